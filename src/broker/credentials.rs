//! Parses a node's entry in `rabbitmqadmin.conf`, in either generation of the file format.
//!
//! Generation 1 is the INI file of the Python tool that is part of older brokers (`priv/www/cli/rabbitmqadmin` in
//! rabbitmq_management), with a section per node. The tool reads the file with `configparser`. Generation 2 is the TOML
//! file of rabbitmqadmin-ng (`SharedSettings` in its `src/config.rs`), with a table per node. Keys that do not concern
//! the connection are ignored.

use super::base_url::{BaseUrl, BaseUrlError, UrlWithLogin};
use super::ini::{self, IniError, Section};
use secrecy::SecretString;
use serde::Deserialize;

/// The default node in both generations.
pub const DEFAULT_NODE: &str = "default";

/// The generation of the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfFormat {
    /// Generation 1.
    Ini,
    /// Generation 2.
    Toml,
}

/// A node's settings. A field is `None` if the file does not set it for the node.
#[derive(Clone, Debug, Default)]
pub struct NodeSettings {
    /// The URL of the management API. Overrides `hostname`, `port` and `tls`.
    pub base_uri: Option<BaseUrl>,
    /// The host.
    pub hostname: Option<String>,
    /// The port of the management API.
    pub port: Option<u16>,
    /// The user name, from its own key or from `base_uri`.
    pub username: Option<String>,
    /// The user's password, from its own key or from `base_uri`.
    pub password: Option<SecretString>,
    /// The vhost.
    pub vhost: Option<String>,
    /// Whether to use TLS.
    pub tls: Option<bool>,
    /// Whether to accept any broker certificate (generation 1 only).
    pub insecure: Option<bool>,
    /// The path of a PEM file with the trusted CA certificates.
    pub ca_cert: Option<String>,
    /// The path of a PEM file with the client certificate.
    pub client_cert: Option<String>,
    /// The path of a PEM file with the client's private key.
    pub client_key: Option<String>,
    /// The prefix of all API paths. It ends with `/api` in generation 2, but not in generation 1.
    pub path_prefix: Option<String>,
}

/// The reason why the settings cannot be read. The message never contains a value from the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfError {
    /// The file is in neither format.
    #[error("line {line}: expected TOML (rabbitmqadmin 2) or INI (rabbitmqadmin 1): {reason}")]
    Malformed {
        /// The line number, starting at 1.
        line: usize,
        /// The parser's error message.
        reason: String,
    },
    /// The node's entry, or the value of a key in the entry, is not valid.
    #[error("node `{node}`: {reason}")]
    Value {
        /// The node.
        node: String,
        /// The key and the problem with its value.
        reason: String,
    },
    /// The file has no section or table with the requested name.
    #[error(
        "no node `{node}`; the file contains {}",
        if .known.is_empty() { "no nodes".to_owned() } else { .known.join(", ") }
    )]
    NoSuchNode {
        /// The requested name.
        node: String,
        /// The existing names.
        known: Vec<String>,
    },
}

/// Parses a node's entry in the text of a `rabbitmqadmin.conf`, in either generation of the file format.
pub fn from_rabbitmqadmin_conf(text: &str, node: &str) -> Result<NodeSettings, ConfError> {
    match detect(text)? {
        ConfFormat::Toml => from_toml(text, node),
        ConfFormat::Ini => from_ini(text, node),
    }
}

/// Detects the generation of a file. Valid TOML is generation 2. String values are not quoted in generation 1, so a
/// generation 1 file with a host name is not valid TOML.
pub fn detect(text: &str) -> Result<ConfFormat, ConfError> {
    let Err(not_toml) = text.parse::<toml::Table>() else { return Ok(ConfFormat::Toml) };
    let line = |offset: usize| text[..offset.min(text.len())].lines().count().max(1);
    match ini::sections(text) {
        // A file with quoted values is TOML with a syntax error, so the TOML parser's error is more useful.
        Ok(_) if text.contains("= \"") || text.contains("=\"") => Err(ConfError::Malformed {
            line: line(not_toml.span().map_or(0, |span| span.start)),
            reason: not_toml.message().to_owned(),
        }),
        Ok(_) => Ok(ConfFormat::Ini),
        Err(error) => Err(error.into()),
    }
}

impl From<IniError> for ConfError {
    fn from(error: IniError) -> Self {
        Self::Malformed { line: error.line, reason: error.reason.to_owned() }
    }
}

fn from_ini(text: &str, node: &str) -> Result<NodeSettings, ConfError> {
    let mut sections = ini::sections(text)?;
    let mut take_section = |name: &str| {
        let at = sections.iter().position(|(known, _)| known == name);
        at.map(|at| sections.remove(at).1)
    };
    let defaults = take_section("DEFAULT").unwrap_or_default();
    let Some(section) = take_section(node) else {
        return Err(ConfError::NoSuchNode {
            node: node.to_owned(),
            known: sections.into_iter().map(|it| it.0).collect(),
        });
    };
    // In `configparser`, `[DEFAULT]` contains the defaults for every section, and `%%` represents a `%`.
    let values = defaults.into_iter().chain(section);
    let mut values: Section = values.map(|(key, value)| (key, value.replace("%%", "%"))).collect();
    let mut take = |key: &str| values.remove(key).filter(|value| !value.is_empty());
    let wrong = |reason: &str| ConfError::Value { node: node.to_owned(), reason: reason.to_owned() };
    let boolean = |key: &str, value: Option<String>| match value.as_deref() {
        None => Ok(None),
        Some(word) if word.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(word) if word.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(_) => Err(wrong(&format!("`{key}` must be True or False"))),
    };
    let port = take("port").map(|port| port.parse().map_err(|_| wrong("`port` must be a number up to 65535")));
    let declare_vhost = take("declare_vhost");
    let base_uri = take("base_uri");
    let settings = NodeSettings {
        base_uri: None,
        hostname: take("hostname"),
        port: port.transpose()?,
        username: take("username"),
        password: take("password").map(SecretString::from),
        // In the Python tool, `vhost` filters lists, and `declare_vhost` applies to declarations.
        vhost: take("vhost").or(declare_vhost),
        tls: boolean("ssl", take("ssl"))?,
        insecure: boolean("ssl_insecure", take("ssl_insecure"))?,
        ca_cert: take("ssl_ca_cert_file"),
        client_cert: take("ssl_cert_file"),
        client_key: take("ssl_key_file"),
        path_prefix: take("path_prefix"),
    };
    settings.with_base_uri(base_uri).map_err(|error| wrong(&format!("`base_uri`: {error}")))
}

/// A node's table in generation 2.
#[derive(Deserialize)]
struct TomlNode {
    base_uri: Option<String>,
    hostname: Option<String>,
    port: Option<u16>,
    username: Option<String>,
    password: Option<SecretString>,
    virtual_host: Option<String>,
    tls: Option<bool>,
    scheme: Option<String>,
    path_prefix: Option<String>,
    ca_certificate_bundle_path: Option<String>,
    client_certificate_file_path: Option<String>,
    client_private_key_file_path: Option<String>,
}

fn from_toml(text: &str, node: &str) -> Result<NodeSettings, ConfError> {
    let mut tables: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| ConfError::Malformed { line: 1, reason: error.message().to_owned() })?;
    let Some(table) = tables.remove(node) else {
        let known = tables.iter().filter(|(_, value)| value.is_table()).map(|(name, _)| name.clone()).collect();
        return Err(ConfError::NoSuchNode { node: node.to_owned(), known });
    };
    // The TOML library's message may quote a value, so the reason contains only the key.
    let wrong = |key: &str| ConfError::Value { node: node.to_owned(), reason: format!("{key} has the wrong type") };
    let entry: TomlNode = table.clone().try_into().map_err(|_| {
        let key = table.as_table().into_iter().flatten().find(|(key, value)| {
            let alone: toml::Table = [((*key).clone(), (*value).clone())].into_iter().collect();
            alone.try_into::<TomlNode>().is_err()
        });
        wrong(&key.map_or_else(|| "the entry".to_owned(), |(key, _)| format!("`{key}`")))
    })?;
    let settings = NodeSettings {
        base_uri: None,
        hostname: entry.hostname,
        port: entry.port,
        username: entry.username,
        password: entry.password,
        vhost: entry.virtual_host,
        tls: entry.tls.or_else(|| entry.scheme.map(|scheme| scheme.eq_ignore_ascii_case("https"))),
        insecure: None,
        ca_cert: entry.ca_certificate_bundle_path,
        client_cert: entry.client_certificate_file_path,
        client_key: entry.client_private_key_file_path,
        path_prefix: entry.path_prefix,
    };
    settings
        .with_base_uri(entry.base_uri)
        .map_err(|error| ConfError::Value { node: node.to_owned(), reason: format!("`base_uri`: {error}") })
}

impl NodeSettings {
    /// Sets `base_uri`. The user name and the password in the URL apply only if the settings do not contain them.
    fn with_base_uri(mut self, text: Option<String>) -> Result<Self, BaseUrlError> {
        if let Some(text) = text {
            let UrlWithLogin { url, username, password } = BaseUrl::parse(&text)?;
            self.base_uri = Some(url);
            self.username = self.username.or(username);
            self.password = self.password.or(password);
        }
        Ok(self)
    }

    /// Returns the management API URL: `base_uri`, or a URL with the host and the port, followed by the path prefix.
    /// The default host is `localhost`. The default port is 15672, or 15671 with TLS. In contrast, the Python tool uses
    /// port 15672 even with TLS.
    pub fn base_url(&self) -> Result<BaseUrl, BaseUrlError> {
        let prefix = self.path_prefix.as_deref().unwrap_or_default();
        if let Some(url) = &self.base_uri {
            return url.with_prefix(prefix);
        }
        let tls = self.tls.unwrap_or(false);
        let host = self.hostname.as_deref().unwrap_or("localhost");
        let port = self.port.unwrap_or(if tls { 15671 } else { 15672 });
        BaseUrl::at_host(host, &port.to_string(), tls, prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    const V1: &str = "# comment\n[DEFAULT]\nusername = everyone\n\n[host_normal]\nhostname = localhost\nport = 15672\n\
        username = guest\npassword = a%%b;c#d\"e\\f\ndeclare_vhost = / # Used as default for declare / delete only\n\n\
        [host_tls]\nhostname = otherhost\nport = 15671\nssl = True\nssl_key_file = /path/key.pem\n\
        ssl_cert_file = /path/cert.pem\nssl_ca_cert_file=/path/ca.pem\nssl_insecure = False\npath_prefix = /rabbit\n\
        vhost = shop\n";

    const V2: &str = "[local]\nhostname = \"localhost\"\nport = 15672\nusername = \"lolz\"\npassword = \"lolz\"\n\
        virtual_host = \"environments/local\"\ntable_style = \"dots\"\n\n[tls]\ntls = true\nhostname = \"h\"\n\
        path_prefix = \"/rabbit/api\"\nca_certificate_bundle_path = \"/ca.pem\"\n\
        client_certificate_file_path = \"/c.pem\"\nclient_private_key_file_path = \"/k.pem\"\n\n\
        [uri]\nbase_uri = \"https://me:pw@h:1/\"\n\n[broken]\nport = \"x\"\n";

    #[test]
    fn generation_1_is_parsed() {
        assert_eq!(detect(V1), Ok(ConfFormat::Ini));
        let node = from_rabbitmqadmin_conf(V1, "host_normal").unwrap();
        assert_eq!(node.username.as_deref(), Some("guest"));
        assert_eq!(node.password.as_ref().unwrap().expose_secret(), "a%b;c#d\"e\\f");
        assert_eq!((node.tls, node.port), (None, Some(15672)));
        assert_eq!(node.base_url().unwrap().to_string(), "http://localhost:15672");
        let node = from_rabbitmqadmin_conf(V1, "host_tls").unwrap();
        assert_eq!(node.username.as_deref(), Some("everyone"));
        assert_eq!(node.vhost.as_deref(), Some("shop"));
        assert_eq!((node.tls, node.insecure), (Some(true), Some(false)));
        assert_eq!(node.ca_cert.as_deref(), Some("/path/ca.pem"));
        assert_eq!(node.client_cert.as_deref(), Some("/path/cert.pem"));
        assert_eq!(node.client_key.as_deref(), Some("/path/key.pem"));
        assert_eq!(node.base_url().unwrap().to_string(), "https://otherhost:15671/rabbit");
    }

    #[test]
    fn generation_2_is_parsed() {
        assert_eq!(detect(V2), Ok(ConfFormat::Toml));
        let node = from_rabbitmqadmin_conf(V2, "local").unwrap();
        assert_eq!(node.vhost.as_deref(), Some("environments/local"));
        assert_eq!(node.password.as_ref().unwrap().expose_secret(), "lolz");
        let node = from_rabbitmqadmin_conf(V2, "tls").unwrap();
        assert_eq!(node.base_url().unwrap().to_string(), "https://h:15671/rabbit");
        assert_eq!(node.ca_cert.as_deref(), Some("/ca.pem"));
        assert_eq!(node.client_cert.as_deref(), Some("/c.pem"));
        assert_eq!(node.client_key.as_deref(), Some("/k.pem"));
        let node = from_rabbitmqadmin_conf(V2, "uri").unwrap();
        assert_eq!(node.base_url().unwrap().to_string(), "https://h:1");
        assert_eq!(node.username.as_deref(), Some("me"));
        assert!(!format!("{node:?}").contains("pw"));
        let error = from_rabbitmqadmin_conf(V2, "broken").unwrap_err();
        assert_eq!(error.to_string(), "node `broken`: `port` has the wrong type");
    }

    #[test]
    fn error_for_a_missing_node_lists_the_existing_nodes() {
        for (text, expected) in [
            (V1, "no node `x`; the file contains host_normal, host_tls"),
            ("", "no node `x`; the file contains no nodes"),
        ] {
            assert_eq!(from_rabbitmqadmin_conf(text, "x").unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn syntax_error_in_toml_has_the_line_but_no_value() {
        let error = from_rabbitmqadmin_conf("[a]\nhostname = \"h\"\npassword = \"secret\n", "a").unwrap_err();
        assert!(matches!(error, ConfError::Malformed { line: 3, .. }), "{error}");
        assert!(!error.to_string().contains("secret"));
    }
}
