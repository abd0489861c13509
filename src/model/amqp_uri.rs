//! AMQP URIs of shovels and federation upstreams, parsed into their components. The password is separate from the
//! components that topo compares, stores and displays.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::fmt;

/// The characters that are percent-encoded in each component: all except the unreserved characters in RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The schemes, each with its default port.
const SCHEMES: [(&str, u16); 2] = [("amqp", 5672), ("amqps", 5671)];
/// The query parameter with the password of the client's private key.
const KEY_PASSWORD: &str = "password";

/// The reason why a string is not an AMQP URI. The message contains no part of the string, because any part could be a
/// password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriProblem {
    /// The string does not start with `amqp://` or `amqps://`.
    Scheme,
    /// The port is not a number from 0 to 65535.
    Port,
    /// The string contains whitespace, a control character or a non-ASCII character, or its percent-encoded bytes are
    /// not valid UTF-8.
    Characters,
    /// The vhost contains an unencoded `/`.
    Vhost,
    /// The string contains a fragment (`#`).
    Fragment,
    /// The user name, the password, the vhost or the query contains an unencoded `@`. An unencoded `/` or `?` in the
    /// password has the same effect.
    At,
}

/// A parsed URI. All components are decoded.
#[derive(Clone, PartialEq, Eq)]
pub struct AmqpUri {
    scheme: &'static str,
    user: Option<String>,
    password: Option<String>,
    host: String,
    port: Option<u16>,
    vhost: Option<String>,
    query: Vec<(String, String)>,
}

/// Writes the URI without its passwords.
impl fmt::Debug for AmqpUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AmqpUri({self})")
    }
}

impl AmqpUri {
    /// Parses a URI, such as `amqps://user:password@host:5671/vhost?heartbeat=10`. The host can be empty, which means
    /// the broker that opens the connection.
    ///
    /// # Errors
    /// Returns the reason why `text` is not an AMQP URI.
    pub fn parse(text: &str) -> Result<Self, UriProblem> {
        if text.contains(|c: char| !c.is_ascii_graphic()) {
            return Err(UriProblem::Characters);
        }
        let (scheme, rest) = text.split_once("://").ok_or(UriProblem::Scheme)?;
        let of_scheme = SCHEMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(scheme));
        let (scheme, default_port) = *of_scheme.ok_or(UriProblem::Scheme)?;
        if rest.contains('#') {
            return Err(UriProblem::Fragment);
        }
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, vhost) =
            rest.split_once('/').map_or((rest, None), |(authority, vhost)| (authority, Some(vhost)));
        let (login, address) = match authority.rsplit_once('@') {
            Some((login, address)) => (Some(login), address),
            None => (None, authority),
        };
        let has_at = |part: Option<&str>| part.is_some_and(|part| part.contains('@'));
        if has_at(login) || has_at(vhost) || has_at(query) {
            return Err(UriProblem::At);
        }
        if vhost.is_some_and(|vhost| vhost.contains('/')) {
            return Err(UriProblem::Vhost);
        }
        let (user, password) = match login.map(|login| login.split_once(':').ok_or(login)) {
            Some(Ok((user, password))) => (Some(user), Some(password)),
            Some(Err(user)) => (Some(user), None),
            None => (None, None),
        };
        // The colons of an IPv6 address are inside brackets.
        let end_of_host = address.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match address[end_of_host..].split_once(':') {
            Some((name, port)) => (&address[..end_of_host + name.len()], Some(port)),
            None => (address, None),
        };
        let number = |port: &str| port.parse::<u16>().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()));
        let port = port.map(|port| number(port).ok_or(UriProblem::Port)).transpose()?;
        // An invalid encoding could make two different passwords equal.
        if percent_decode_str(text).decode_utf8().is_err() {
            return Err(UriProblem::Characters);
        }
        let parameter = |parameter: &str| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            (decode(name), decode(value))
        };
        let mut query: Vec<(String, String)> =
            query.into_iter().flat_map(|query| query.split('&')).map(parameter).collect();
        // The order of parameters is not significant.
        query.sort_by(|(first, _), (second, _)| first.cmp(second));
        Ok(Self {
            scheme,
            user: user.map(decode).filter(|user| !user.is_empty()),
            password: password.map(decode),
            host: host.to_ascii_lowercase(),
            port: port.filter(|port| *port != default_port),
            vhost: vhost.map(decode),
            query,
        })
    }

    /// Returns the URI of a vhost on the broker that opens the connection.
    pub fn of_local_vhost(vhost: &str) -> Self {
        let (scheme, _) = SCHEMES[0];
        let vhost = Some(vhost.to_owned());
        Self { scheme, user: None, password: None, host: String::new(), port: None, vhost, query: Vec::new() }
    }

    /// Returns the user name.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the password.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Returns the vhost; `None` if the URI has no path.
    pub fn vhost(&self) -> Option<&str> {
        self.vhost.as_deref()
    }

    /// Returns true if the URI has no host: it refers to the broker that opens the connection.
    pub fn is_local(&self) -> bool {
        self.host.is_empty()
    }

    /// Returns true if the query contains the password of a private key.
    pub fn has_key_password(&self) -> bool {
        self.query.iter().any(|(name, _)| name == KEY_PASSWORD)
    }

    /// Returns true if the queries are equal, including the password of a private key.
    pub fn has_same_query(&self, other: &Self) -> bool {
        self.query == other.query
    }

    /// Returns the URI with `password` as its password.
    pub fn with_password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Removes the path if it refers to the `default` vhost.
    pub fn without_vhost(mut self, default: &str) -> Self {
        self.vhost = self.vhost.filter(|vhost| vhost != default);
        self
    }

    /// Returns the complete URI, including all passwords, with a canonical encoding.
    pub fn expose(&self) -> String {
        self.format(self.password.as_deref(), |_, value| encode(value))
    }

    fn format(&self, password: Option<&str>, value: impl Fn(&str, &str) -> String) -> String {
        let mut text = format!("{}://", self.scheme);
        if self.user.is_some() || password.is_some() {
            text.push_str(&encode(self.user.as_deref().unwrap_or_default()));
            if let Some(password) = password {
                text.push(':');
                text.push_str(&encode(password));
            }
            text.push('@');
        }
        text.push_str(&self.host);
        if let Some(port) = self.port {
            text.push_str(&format!(":{port}"));
        }
        if let Some(vhost) = &self.vhost {
            text.push('/');
            text.push_str(&encode(vhost));
        }
        for (at, (name, parameter)) in self.query.iter().enumerate() {
            text.push(if at == 0 { '?' } else { '&' });
            text.push_str(&format!("{}={}", encode(name), value(name, parameter)));
        }
        text
    }
}

/// Writes the URI with a canonical encoding and without the password of the user. Replaces the password of a private
/// key with `***`.
impl fmt::Display for AmqpUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hide = |name: &str, value: &str| if name == KEY_PASSWORD { "***".to_owned() } else { encode(value) };
        f.write_str(&self.format(None, hide))
    }
}

/// Describes the problem and its solution.
impl fmt::Display for UriProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "it does not start with amqp:// or amqps://",
            Self::Port => "its port is not a number from 0 to 65535",
            Self::Characters => {
                "it contains a space, a control character, a non-ASCII character (percent-encode it) or invalid UTF-8"
            }
            Self::Vhost => "its vhost contains a `/` (write %2F)",
            Self::Fragment => "it contains a `#` (write %23)",
            Self::At => {
                "it contains an unencoded `@`, `/` or `?` in the user name, password or vhost (write %40, %2F or %3F)"
            }
        })
    }
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        AmqpUri::parse(text).unwrap().to_string()
    }

    #[test]
    fn equivalent_uris_have_the_same_text() {
        for (text, expected) in [
            ("amqp://", "amqp://"),
            ("amqp:///shop", "amqp:///shop"),
            ("AMQP://Host:5672/sh%6Fp", "amqp://host/shop"),
            ("amqps://h:5671", "amqps://h"),
            ("amqps://h:5672/%2f", "amqps://h:5672/%2F"),
            ("amqp://u@/v", "amqp://u@/v"),
            ("amqp://a%2Fb:p%40ss@h/v", "amqp://a%2Fb@h/v"),
            ("amqp://u:@h", "amqp://u@h"),
            ("amqp://[::1]:5673/", "amqp://[::1]:5673/"),
            (
                "amqps://h?cacertfile=/etc/ca.pem&verify=verify_peer",
                "amqps://h?cacertfile=%2Fetc%2Fca.pem&verify=verify_peer",
            ),
            ("amqps://h?password=hunter2", "amqps://h?password=***"),
            ("amqp://h?heartbeat=5&connection_timeout=9", "amqp://h?connection_timeout=9&heartbeat=5"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
            assert_eq!(format!("{:?}", AmqpUri::parse(text).unwrap()), format!("AmqpUri({expected})"));
        }
    }

    #[test]
    fn passwords_are_encoded() {
        let uri = AmqpUri::parse("amqp://fed@h/v").unwrap();
        assert_eq!(uri.clone().with_password("pa#s/s@ü").expose(), "amqp://fed:pa%23s%2Fs%40%C3%BC@h/v");
        let parsed = AmqpUri::parse(&uri.with_password("pa#s/s@ü").expose()).unwrap();
        assert_eq!((parsed.user(), parsed.password(), parsed.vhost()), (Some("fed"), Some("pa#s/s@ü"), Some("v")));
    }

    #[test]
    fn invalid_uris_are_refused() {
        for (text, expected) in [
            ("http://h", UriProblem::Scheme),
            ("amqp:h", UriProblem::Scheme),
            ("amqp://h:port", UriProblem::Port),
            ("amqp://u:pa ss@h", UriProblem::Characters),
            ("amqp://u:pä@h", UriProblem::Characters),
            ("amqp://u:pa#ss@h", UriProblem::Fragment),
            ("amqp://u:pa/ss@h", UriProblem::At),
            ("amqp://u:pa@ss@h", UriProblem::At),
            ("amqp://u:12?x@h", UriProblem::At),
            ("amqp://u:pa?ss@h", UriProblem::At),
            ("amqp://h/a/b", UriProblem::Vhost),
            ("amqp://h:+5672", UriProblem::Port),
            ("amqp://u:%FF@h", UriProblem::Characters),
        ] {
            assert_eq!(AmqpUri::parse(text), Err(expected), "{text}");
        }
    }
}
