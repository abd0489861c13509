//! Determines the broker's address and the credentials from flags, environment variables, the selected environment in
//! the specs, and `~/.rabbitmqadmin.conf`. Defines flags for the broker's statistics and tick intervals, which the
//! management API does not report.

use super::failure::Failure;
use super::value_parsers::positive_duration;
use super::{files, secrets};
use crate::broker::credentials::{ConfError, DEFAULT_NODE, NodeSettings, from_rabbitmqadmin_conf};
use crate::broker::transport::AmqpUrl;
use crate::broker::{Access, BaseUrl, ClientCertificate, ConnectionOptions, Process, TransportKind, redacted_url};
use crate::model::Intervals;
use crate::model::names::LOCK_QUEUE;
use crate::model::units::duration;
use crate::render::shell::quote;
use crate::spec::Environment;
use clap::Args;
use clap::builder::BoolishValueParser;
use secrecy::SecretString;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DEFAULT_URL: &str = "http://localhost:15672";

/// Refuses a password on the command line.
pub(super) fn refuse_password(arguments: &ConnectionArguments) -> Result<(), Failure> {
    match arguments.password {
        None => Ok(()),
        Some(_) => Err(Failure::usage(
            "a password cannot be passed as an argument: process lists and shell histories would expose it",
        )
        .hint("set TOPO_PASSWORD")
        .hint("or write it to a file that only you can read, and use --password-file FILE")),
    }
}

/// Returns the connection flags for a suggested command. Omits passwords and `--timeout`, and also the values that the
/// environment already sets, except those of `--insecure`, `--transport` and `--amqp-url`.
pub(super) fn flags(arguments: &ConnectionArguments) -> String {
    let mut line = String::new();
    let mut flag = |name: &str, value: Option<String>| {
        let variable = format!("TOPO_{}", name.to_uppercase().replace('-', "_"));
        if let Some(value) = value.filter(|value| environment(&variable).as_ref() != Some(value)) {
            let value = if name == "url" { redacted_url(&value) } else { value };
            line.push_str(&format!(" --{name} {}", quote(&value)));
        }
    };
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    flag("url", arguments.url.clone());
    flag("username", arguments.username.clone());
    flag("password-file", path(&arguments.password_file));
    flag("node", arguments.node.clone());
    flag("config", path(&arguments.config));
    flag("ca-cert", path(&arguments.ca_cert));
    flag("client-cert", path(&arguments.client_cert));
    flag("client-key", path(&arguments.client_key));
    if arguments.insecure {
        line.push_str(" --insecure");
    }
    if arguments.transport != TransportKind::Auto {
        line.push_str(&format!(" --transport {}", arguments.transport.as_str()));
    }
    // A suggested command does not contain a URL with a password, because users should set such a URL in the
    // environment.
    if let Some(url) = arguments.amqp_url.as_ref().filter(|url| url.password.is_none()) {
        line.push_str(&format!(" --amqp-url {}", quote(&url.address.to_string())));
    }
    line
}

/// Returns the `--url` flag for a broker. Returns an empty string if `TOPO_URL` is set to the URL of this broker, or if
/// `TOPO_URL` is not set and the URL is the default.
pub(super) fn url_flag(url: &str) -> String {
    let preset = environment("TOPO_URL").unwrap_or_else(|| DEFAULT_URL.to_owned());
    if redacted_url(&preset) == url { String::new() } else { format!(" --url {}", quote(url)) }
}

/// Creates a client for the broker. Sends no request.
pub(super) fn connect(arguments: &ConnectionArguments, intervals: Intervals) -> Result<Access, Failure> {
    connect_to(arguments, None, intervals)
}

/// Returns a failure if `TOPO_URL` or `TOPO_NODE` selects a different broker than the selected environment in the
/// specs.
fn refuse_other_broker(arguments: &ConnectionArguments, url: &str, selected: &str) -> Result<(), Failure> {
    for (name, value) in [("TOPO_URL", &arguments.url), ("TOPO_NODE", &arguments.node)] {
        let is_same = name == "TOPO_URL" && value.as_deref() == Some(url);
        if value.is_some() && environment(name) == *value && !is_same {
            let message = format!("{name} and environment `{selected}` in the specs select different brokers");
            return Err(Failure::usage(message).hint(format!("unset {name}, or select the broker with a flag")));
        }
    }
    Ok(())
}

/// Creates a client for the broker that the arguments specify, or otherwise for the broker of the selected environment.
/// Sends no request.
pub(super) fn connect_to(
    arguments: &ConnectionArguments,
    selected: Option<&Environment>,
    intervals: Intervals,
) -> Result<Access, Failure> {
    refuse_password(arguments)?;
    let node = node(arguments)?;
    let url = selected.and_then(|environment| environment.url.as_ref()).map(|url| url.value.as_str());
    if let (Some(url), Some(selected)) = (url, selected) {
        refuse_other_broker(arguments, url, &selected.name)?;
    }
    let (base_url, login) = address(arguments, url.filter(|_| arguments.node.is_none()), &node)?;
    // The node that `--node` selects takes precedence over rabbitmqadmin's variables.
    let requested = arguments.node.as_ref().map(|_| &node);
    // Within each source, a separate user name or password takes precedence over the URL.
    let username = arguments
        .username
        .clone()
        .or(login.topo.0)
        .or_else(|| requested.and_then(|node| node.username.clone()))
        .or_else(|| rabbitmqadmin("USERNAME"))
        .or(login.rabbitmqadmin.0)
        .or_else(|| node.username.clone())
        .unwrap_or_else(|| "guest".to_owned());
    let password = match &arguments.password_file {
        Some(path) => Some(read_password(path)?),
        None => environment("TOPO_PASSWORD")
            .map(SecretString::from)
            .or(login.topo.1)
            .or_else(|| requested.and_then(|node| node.password.clone()))
            .or_else(|| rabbitmqadmin("PASSWORD").map(SecretString::from))
            .or(login.rabbitmqadmin.1)
            .or_else(|| node.password.clone()),
    };
    // `guest` is the broker's default user. By default, this user can log in only from the broker's machine.
    let password = match password {
        Some(password) => password,
        None if username == "guest" => SecretString::from("guest"),
        None => {
            return Err(Failure::usage(format!("no password was given for user `{username}`"))
                .hint("set TOPO_PASSWORD, or use --password-file FILE"));
        }
    };
    let path =
        |flag: &Option<PathBuf>, node: &Option<String>| flag.clone().or_else(|| node.as_ref().map(PathBuf::from));
    let mut options = ConnectionOptions::new(base_url, username, password);
    let ca_cert = path(&arguments.ca_cert, &node.ca_cert);
    options.ca_cert = ca_cert.as_deref().map(read).transpose()?;
    let client_cert = path(&arguments.client_cert, &node.client_cert);
    let client_key = path(&arguments.client_key, &node.client_key);
    options.client_cert = match (&client_cert, &client_key) {
        (Some(cert), Some(key)) => Some(ClientCertificate { cert: read(cert)?, key: read(key)? }),
        (None, None) => None,
        (Some(_), None) => return Err(Failure::usage("--client-cert requires its key: --client-key FILE")),
        (None, Some(_)) => return Err(Failure::usage("--client-key requires its certificate: --client-cert FILE")),
    };
    options.insecure = arguments.insecure || node.insecure.unwrap_or(false);
    options.timeout = arguments.timeout;
    options.intervals = intervals;
    options.read_secret = secrets::read;
    let access = Access::new(options, process()).map_err(|error| {
        let files: Vec<String> =
            [ca_cert, client_cert, client_key].into_iter().flatten().map(|path| path.display().to_string()).collect();
        let failure = Failure::from(error);
        if files.is_empty() { failure } else { failure.because(format!("read from {}", files.join(", "))) }
    })?;
    Ok(access.with_amqp_url(arguments.amqp_url.clone()).with_transport(arguments.transport))
}

/// A user name and a password.
type Login = (Option<String>, Option<SecretString>);

/// The user info in the URL. The source of the URL determines the field: topo's flag or variable, or rabbitmqadmin's
/// variable.
#[derive(Default)]
struct UrlLogin {
    topo: Login,
    rabbitmqadmin: Login,
}

/// Returns the URL of the management API, and the user info in that URL. `selected` is the URL of the selected
/// environment.
fn address(
    arguments: &ConnectionArguments,
    selected: Option<&str>,
    node: &NodeSettings,
) -> Result<(BaseUrl, UrlLogin), Failure> {
    let target_host = || {
        let host = rabbitmqadmin("TARGET_HOST")?;
        let port = rabbitmqadmin("TARGET_PORT").unwrap_or_else(|| "15672".to_owned());
        Some(BaseUrl::at_host(&host, &port, false, "").map_err(|error| Failure::usage(error.to_string())))
    };
    let parse = |url: &str| {
        BaseUrl::parse(url).map_err(|error| {
            Failure::usage(error.to_string()).hint("use a URL such as http://localhost:15672 or https://host/rabbitmq")
        })
    };
    let none = Login::default;
    if let Some(url) = arguments.url.as_deref().or(selected) {
        let parsed = parse(url)?;
        return Ok((parsed.url, UrlLogin { topo: (parsed.username, parsed.password), rabbitmqadmin: none() }));
    }
    let node_url = || {
        let has_url = node.hostname.is_some() || node.base_uri.is_some();
        has_url.then(|| node.base_url().map_err(|error| Failure::usage(error.to_string()))).transpose()
    };
    if arguments.node.is_some()
        && let Some(url) = node_url()?
    {
        return Ok((url, UrlLogin::default()));
    }
    if let Some(url) = rabbitmqadmin("BASE_URI") {
        let parsed = parse(&url)?;
        return Ok((parsed.url, UrlLogin { topo: none(), rabbitmqadmin: (parsed.username, parsed.password) }));
    }
    if let Some(url) = target_host() {
        return Ok((url?, UrlLogin::default()));
    }
    if let Some(url) = node_url()? {
        return Ok((url, UrlLogin::default()));
    }
    Ok((parse(DEFAULT_URL)?.url, UrlLogin::default()))
}

/// Reads the settings of the requested node from rabbitmqadmin.conf. If no node is requested, reads the settings of the
/// `default` node, or returns no settings if this node does not exist.
fn node(arguments: &ConnectionArguments) -> Result<NodeSettings, Failure> {
    let requested = arguments.node.clone().or_else(|| rabbitmqadmin("NODE_ALIAS"));
    let specified = arguments.config.clone().or_else(|| rabbitmqadmin("CONFIG_FILE_PATH").map(PathBuf::from));
    let home = || environment("HOME").map(|home| Path::new(&home).join(".rabbitmqadmin.conf"));
    let Some(path) = specified.clone().or_else(home) else { return Ok(NodeSettings::default()) };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && requested.is_none() && specified.is_none() => {
            return Ok(NodeSettings::default());
        }
        Err(error) => return Err(read_failure(&path, &error)),
    };
    match from_rabbitmqadmin_conf(&text, requested.as_deref().unwrap_or(DEFAULT_NODE)) {
        Ok(settings) => Ok(settings),
        Err(ConfError::NoSuchNode { .. }) if requested.is_none() => Ok(NodeSettings::default()),
        Err(error) => Err(Failure::usage(format!("{}: {error}", path.display()))),
    }
}

fn read(path: impl AsRef<Path>) -> Result<Vec<u8>, Failure> {
    let path = path.as_ref();
    std::fs::read(path).map_err(|error| read_failure(path, &error))
}

fn read_password(path: &Path) -> Result<SecretString, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| read_failure(path, &error))?;
    // Editors end a file with a line break, which is not part of the password.
    Ok(SecretString::from(text.strip_suffix('\n').map_or(&*text, |text| text.strip_suffix('\r').unwrap_or(text))))
}

fn read_failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot read {}", files::redacted_path(path))).because(error.to_string())
}

/// Returns the value of a rabbitmqadmin environment variable. `name` does not contain the prefix.
fn rabbitmqadmin(name: &str) -> Option<String> {
    environment(&format!("RABBITMQADMIN_{name}"))
}

/// Returns the value of an environment variable. Returns `None` if the variable is unset or empty.
pub(super) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the `--lock-name` flag. Returns an empty string for the default name.
pub(super) fn lock_flag(name: &str) -> String {
    if name == LOCK_QUEUE { String::new() } else { format!(" --lock-name {}", quote(name)) }
}

/// Returns the description of this process for the locks that it holds.
pub(super) fn process() -> Process {
    let user = environment("USER").or_else(|| environment("LOGNAME")).unwrap_or_else(|| "unknown-user".to_owned());
    let host = environment("HOSTNAME")
        .or_else(|| std::fs::read_to_string("/etc/hostname").ok().map(|name| name.trim().to_owned()))
        .unwrap_or_else(|| "unknown host".to_owned());
    Process::new(user, host)
}

/// The broker to connect to, and the user.
#[derive(Debug, Args)]
#[command(next_help_heading = "Broker")]
pub(super) struct ConnectionArguments {
    /// URL of the management API [default: http://localhost:15672]
    #[arg(long, value_name = "URL", env = "TOPO_URL")]
    pub(super) url: Option<String>,
    /// User name [default: guest]
    #[arg(long, value_name = "NAME", env = "TOPO_USERNAME")]
    pub(super) username: Option<String>,
    /// File that contains the password; alternative to TOPO_PASSWORD
    #[arg(long, value_name = "FILE", env = "TOPO_PASSWORD_FILE")]
    pub(super) password_file: Option<PathBuf>,
    /// Rejected: other users on the machine can see command lines
    // topo parses this flag so that the error explains where to set the password and does not repeat the password. `-p`
    // is the short flag of rabbitmqadmin.
    #[arg(short, long, num_args = 0..=1, hide = true)]
    pub(super) password: Option<Option<String>>,
    /// Node in rabbitmqadmin.conf (INI format of version 1 or TOML format of version 2)
    #[arg(short = 'N', long, value_name = "NAME", env = "TOPO_NODE")]
    pub(super) node: Option<String>,
    /// Path of rabbitmqadmin.conf [default: ~/.rabbitmqadmin.conf]
    #[arg(long, value_name = "FILE", env = "TOPO_CONFIG")]
    pub(super) config: Option<PathBuf>,
    /// CA certificate that signed the broker's certificate (PEM); no other CA is trusted
    #[arg(long, value_name = "FILE", env = "TOPO_CA_CERT")]
    pub(super) ca_cert: Option<PathBuf>,
    /// Client certificate (PEM, with its chain)
    #[arg(long, value_name = "FILE", env = "TOPO_CLIENT_CERT")]
    pub(super) client_cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM, not encrypted)
    #[arg(long, value_name = "FILE", env = "TOPO_CLIENT_KEY")]
    pub(super) client_key: Option<PathBuf>,
    /// Skip certificate verification; an attacker on the network can then read the password
    #[arg(long, env = "TOPO_INSECURE", value_parser = BoolishValueParser::new())]
    pub(super) insecure: bool,
    /// AMQP URL for moving messages [default: host of --url, AMQP port as reported by the broker]
    #[arg(long, value_name = "URL", env = "TOPO_AMQP_URL", hide_env_values = true, value_parser = AmqpUrl::parse)]
    pub(super) amqp_url: Option<AmqpUrl>,
    /// Transport for the messages of a migration: topo over AMQP, or a shovel on the broker
    #[arg(long, alias = "mover", value_enum, default_value_t, env = "TOPO_TRANSPORT")]
    pub(super) transport: TransportKind,
    /// Timeout for a request; after a transient error, topo retries the request, up to five attempts in total
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = positive_duration, env = "TOPO_TIMEOUT")]
    pub(super) timeout: Duration,
}

/// The intervals at which the broker updates its consumer list and its message counts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Broker")]
pub(super) struct IntervalArguments {
    /// Value of the broker's collect_statistics_interval, the maximum age of its consumer list [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, env = "TOPO_STATISTICS_INTERVAL")]
    pub(super) statistics_interval: Option<Duration>,
    /// Value of the broker's quorum_tick_interval, the maximum age of a quorum queue's counts [default: 5s; before topo
    /// deletes an empty quorum queue, it also observes two ticks]
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, env = "TOPO_TICK_INTERVAL")]
    pub(super) tick_interval: Option<Duration>,
}

impl IntervalArguments {
    pub(super) fn intervals(&self) -> Intervals {
        Intervals::new(self.statistics_interval, self.tick_interval)
    }

    /// Returns the interval flags for a suggested command, without values that the environment already sets.
    pub(super) fn flags(&self) -> String {
        let flags = [("statistics-interval", self.statistics_interval), ("tick-interval", self.tick_interval)];
        let mut line = String::new();
        for (name, value) in flags {
            let variable = format!("TOPO_{}", name.to_uppercase().replace('-', "_"));
            let typed = value.filter(|value| {
                let set = environment(&variable).and_then(|text| positive_duration(&text).ok());
                set != Some(*value)
            });
            let typed = typed.and_then(|value| i64::try_from(value.as_millis()).ok()).and_then(duration);
            if let Some(value) = typed {
                line.push_str(&format!(" --{name} {value}"));
            }
        }
        line
    }
}
