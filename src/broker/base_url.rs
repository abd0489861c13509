//! A management API URL without user info, and a parser for URLs with user info.

use super::redact::is_unambiguous;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use secrecy::SecretString;
use std::fmt;

/// A management API URL without user info and without the trailing `/api`, for example `https://host:15671/rabbit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(Url);

/// A URL and its optional user info.
#[derive(Clone, Debug)]
pub struct UrlWithLogin {
    /// The URL without the user info.
    pub url: BaseUrl,
    /// The user name before the `@`, decoded.
    pub username: Option<String>,
    /// The password before the `@`, decoded.
    pub password: Option<SecretString>,
}

/// The reason why a string is not a valid management API URL. The message never contains the string, because the string
/// may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// The string is not a URL.
    #[error(
        "the URL is malformed; expected http://host:15672 or https://host:15671/prefix; percent-encode special \
         characters in the user name and password"
    )]
    Malformed,
    /// The scheme is neither `http` nor `https`, for example `amqp://`.
    #[error(
        "the URL must start with http:// or https://; the management API listens on port 15672, or 15671 with TLS, \
         not on the AMQP port"
    )]
    Scheme,
    /// The URL contains a `?` or `#`.
    #[error("the URL must not contain `?` or `#`")]
    Query,
    /// The URL contains an `@` after the host, for example because an unencoded `/` in the password ends the host.
    #[error(
        "the URL must not contain `@` after the host; percent-encode `/` and other special characters in the user name \
         and password"
    )]
    AtSign,
    /// The host contains a URL delimiter or a `%`, or the port contains a character other than a digit.
    #[error("the host must be a name or an IP address, and the port must be a number")]
    Host,
    /// The path prefix contains `://`.
    #[error("the path prefix must be a path, not a URL")]
    Prefix,
}

impl BaseUrl {
    /// Parses `http[s]://[user[:password]@]host[:port][/prefix]`. Removes a trailing `/` and a trailing `/api`.
    ///
    /// The default port is 80 for `http` and 443 for `https`, not a management port.
    pub fn parse(text: &str) -> Result<UrlWithLogin, BaseUrlError> {
        let mut url = Url::parse(text.trim()).map_err(|_| BaseUrlError::Malformed)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BaseUrlError::Scheme);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(BaseUrlError::Query);
        }
        if !is_unambiguous(&url) {
            return Err(BaseUrlError::AtSign);
        }
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let username = Some(decoded(url.username())).filter(|name| !name.is_empty());
        let password = url.password().map(|password| SecretString::from(decoded(password)));
        // Both calls succeed for URLs with a host, which every http URL has.
        url.set_username("").map_err(|()| BaseUrlError::Malformed)?;
        url.set_password(None).map_err(|()| BaseUrlError::Malformed)?;
        let prefix = url.path().trim_end_matches('/');
        let prefix = prefix.strip_suffix("/api").unwrap_or(prefix).trim_end_matches('/').to_owned();
        url.set_path(&prefix);
        Ok(UrlWithLogin { url: Self(url), username, password })
    }

    /// Builds a URL from a host, a port and a path prefix. The scheme is `https` if `tls` is true, and `http`
    /// otherwise. The host is a name or an IP address. An IPv6 address may be in brackets.
    pub fn at_host(host: &str, port: &str, tls: bool, prefix: &str) -> Result<Self, BaseUrlError> {
        if host.contains(['/', '\\', '?', '#', '@', '%']) || !port.chars().all(|c| c.is_ascii_digit()) {
            return Err(BaseUrlError::Host);
        }
        let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
        let scheme = if tls { "https" } else { "http" };
        Self::parse(&format!("{scheme}://{host}:{port}"))?.url.with_prefix(prefix)
    }

    /// Appends a path prefix.
    pub fn with_prefix(&self, prefix: &str) -> Result<Self, BaseUrlError> {
        if prefix.contains("://") {
            return Err(BaseUrlError::Prefix);
        }
        Ok(Self::parse(&format!("{self}/{}", prefix.trim_matches('/')))?.url)
    }

    /// Returns true if the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Returns the host. An IPv6 address has no brackets.
    pub(super) fn host(&self) -> String {
        self.0.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned()
    }

    /// Returns true if the host is this machine. topo never connects to such a host through a proxy.
    pub fn is_loopback(&self) -> bool {
        match self.0.host_str() {
            Some("localhost") => true,
            Some(host) => {
                let bare = host.trim_start_matches('[').trim_end_matches(']');
                host.ends_with(".localhost") || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
            None => false,
        }
    }

    /// Returns this URL with `path` appended. Returns `None` if URL parsing would change the result, for example by
    /// removing dot segments.
    pub(super) fn join(&self, path: &str) -> Option<Url> {
        let text = format!("{self}{path}");
        Url::parse(&text).ok().filter(|url| url.as_str() == text)
    }
}

/// Formats the URL without a trailing slash.
impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    #[test]
    fn user_info_is_separated_from_the_url() {
        let read = BaseUrl::parse("https://me%40x:p%2Fw@host:15671/rabbit/api/").unwrap();
        assert_eq!(read.url.to_string(), "https://host:15671/rabbit");
        assert_eq!(read.username.as_deref(), Some("me@x"));
        assert_eq!(read.password.unwrap().expose_secret(), "p/w");
        assert!(read.url.is_https());
    }

    #[test]
    fn urls_without_user_info_are_parsed() {
        for (text, shown) in [
            ("http://localhost:15672", "http://localhost:15672"),
            ("http://localhost:15672/", "http://localhost:15672"),
            ("http://localhost:15672/api", "http://localhost:15672"),
            ("https://host", "https://host"),
            ("http://[::1]:15672/a/b", "http://[::1]:15672/a/b"),
        ] {
            let read = BaseUrl::parse(text).unwrap();
            assert_eq!(read.url.to_string(), shown);
            assert!(read.username.is_none() && read.password.is_none());
        }
    }

    #[test]
    fn errors_do_not_contain_the_url() {
        assert_eq!(BaseUrl::parse("amqp://guest:secret@host").unwrap_err(), BaseUrlError::Scheme);
        assert_eq!(BaseUrl::parse("localhost:15672").unwrap_err(), BaseUrlError::Scheme);
        assert_eq!(BaseUrl::parse("not a url").unwrap_err(), BaseUrlError::Malformed);
        assert_eq!(BaseUrl::parse("http://host/?x").unwrap_err(), BaseUrlError::Query);
        assert_eq!(BaseUrl::parse("http://guest:12/secret@host").unwrap_err(), BaseUrlError::AtSign);
        assert!(!BaseUrl::parse("http://guest:secret@host:x").unwrap_err().to_string().contains("secret"));
    }

    #[test]
    fn loopback_hosts_are_recognized() {
        for (text, expected) in [
            ("http://localhost", true),
            ("http://127.0.0.9:1", true),
            ("http://[::1]:1", true),
            ("http://rabbit.localhost", true),
            ("http://10.0.0.1", false),
            ("http://localhost.example.com", false),
        ] {
            assert_eq!(BaseUrl::parse(text).unwrap().url.is_loopback(), expected, "{text}");
        }
    }

    #[test]
    fn encoded_names_are_kept_and_dot_segments_are_refused() {
        let base = BaseUrl::parse("http://h:1/p").unwrap().url;
        for path in ["/api/queues/%2F/a%2Fb%20%25%23%C3%BC~", "/api/bindings/%2F/e/x/q/y/%252E%252E", "/api/q/...?a=b"]
        {
            assert_eq!(base.join(path).unwrap().as_str(), format!("http://h:1/p{path}"));
        }
        for path in ["/api/queues/%2F/..", "/api/queues/%2F/%2E%2E", "/api/queues/./x"] {
            assert_eq!(base.join(path), None, "{path}");
        }
    }
}
