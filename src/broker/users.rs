//! Reads users, compares their passwords with the secrets in a spec, and writes users.
//!
//! `GET /api/users` lists the hash of each password: a 4-byte salt and the digest of the salt and the password, in
//! Base64 (`rabbit_password:hash`). topo computes the digest of a secret with the current salt, so it can compare
//! passwords without writing anything. Snapshots do not contain hashes.

use super::connection::Broker;
use super::error::BrokerError;
use super::permissions::is_hidden;
use super::records::ReadRecords;
use super::secrets::Secrets;
use super::snapshot::Snapshot;
use crate::model::record_kinds::HASHING_ALGORITHMS;
use crate::model::secret::Template;
use crate::model::{
    ArgumentValue, Arguments, ExchangeName, Record, RecordId, RecordKind, SecretRef, TopicPermission, Topology,
    UserName, VhostName,
};
use crate::plan::request::{Request, path};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256, Sha512};
use std::collections::BTreeMap;
use std::fmt;

/// The length of the salt in bytes.
const SALT: usize = 4;
/// The prefix of the broker's names for hashing algorithms.
const ALGORITHM_PREFIX: &str = "rabbit_password_hashing_";
/// The hashing algorithm of a user for whom no algorithm is set.
const DEFAULT_ALGORITHM: &str = "sha256";

/// An entry of `GET /api/users`, or of `users` in a definitions file.
#[derive(Deserialize)]
pub(super) struct UserEntry {
    pub(super) name: String,
    password_hash: Option<String>,
    /// A definitions file can contain the password itself.
    password: Option<IgnoredAny>,
    hashing_algorithm: Option<String>,
    tags: Option<ArgumentValue>,
}

/// Converts users to records. If a user's password matches that of the desired user or cannot be compared, the record
/// contains the desired user's reference to the secret.
///
/// # Errors
/// [`BrokerError::Secret`] if the value of a secret cannot be used.
pub(super) fn records(
    users: Vec<UserEntry>,
    desired: &Topology,
    secrets: &Secrets,
) -> Result<ReadRecords, BrokerError> {
    let mut read = ReadRecords::default();
    check_hashes(desired, secrets)?;
    for user in users {
        let id = RecordId::named(RecordKind::User, user.name.as_str());
        let mut fields = Arguments::from([("tags".to_owned(), user.tags.clone().unwrap_or(ArgumentValue::Null))]);
        if !user.has_password() {
            fields.insert("password".to_owned(), "none".into());
        }
        if let Some(desired_user) = desired.records.get(&id) {
            for (field, secret) in
                desired_user.secrets().filter(|(field, _)| ["password", "passwordHash"].contains(field))
            {
                let password_match = match field {
                    "password" => compare_password(&user, &secret, secrets)?,
                    _ => compare_hash(&user, desired_user, &secret, secrets)?,
                };
                if let PasswordMatch::Unknown(reason) = &password_match {
                    read.not_compared.insert(id.clone(), reason.clone());
                }
                if password_match != PasswordMatch::Different {
                    fields.insert(field.to_owned(), secret.value());
                    if let Some(algorithm) = desired_user.fields.get("hashingAlgorithm") {
                        fields.insert("hashingAlgorithm".to_owned(), algorithm.clone());
                    }
                }
            }
        }
        read.records.extend(Record::new(id.clone(), fields).map(|record| (id, record)));
    }
    Ok(read)
}

#[derive(PartialEq, Eq)]
enum PasswordMatch {
    Equal,
    Different,
    /// The reason why topo cannot compare the password.
    Unknown(String),
}

fn compare_password(user: &UserEntry, secret: &SecretRef, secrets: &Secrets) -> Result<PasswordMatch, BrokerError> {
    if !user.has_password() {
        return Ok(PasswordMatch::Different);
    }
    let Some(password) = secrets.value(secret)? else { return Ok(unknown(secret)) };
    let Some(hash) = &user.password_hash else {
        return Ok(PasswordMatch::Unknown("the definitions file contains no password hash for this user".to_owned()));
    };
    let hash = STANDARD.decode(hash).unwrap_or_default();
    let Some((salt, digest)) = hash.split_at_checked(SALT) else { return Ok(PasswordMatch::Different) };
    let salted = [salt, password.expose_secret().as_bytes()].concat();
    let computed = match user.algorithm() {
        "sha256" => Sha256::digest(&salted).to_vec(),
        "sha512" => Sha512::digest(&salted).to_vec(),
        "md5" => Md5::digest(&salted).to_vec(),
        other => return Ok(PasswordMatch::Unknown(format!("topo does not support the hashing algorithm {other}"))),
    };
    Ok(if computed == digest { PasswordMatch::Equal } else { PasswordMatch::Different })
}

fn compare_hash(
    user: &UserEntry,
    desired_user: &Record,
    secret: &SecretRef,
    secrets: &Secrets,
) -> Result<PasswordMatch, BrokerError> {
    let Some(hash) = secrets.value(secret)? else { return Ok(unknown(secret)) };
    let algorithm = desired_algorithm(desired_user);
    let is_equal = user.password_hash.as_deref() == Some(hash.expose_secret()) && user.algorithm() == algorithm;
    Ok(if is_equal { PasswordMatch::Equal } else { PasswordMatch::Different })
}

fn unknown(secret: &SecretRef) -> PasswordMatch {
    PasswordMatch::Unknown(secret.missing())
}

/// Returns the algorithm for a desired user's password hash.
fn desired_algorithm(user: &Record) -> &str {
    user.fields.get("hashingAlgorithm").and_then(ArgumentValue::as_text).unwrap_or(DEFAULT_ALGORITHM)
}

/// Checks the format of the password hashes of all desired users, including new users. Skips secrets that are not set.
fn check_hashes(desired: &Topology, secrets: &Secrets) -> Result<(), BrokerError> {
    for user in desired.records.values().filter(|record| record.id.kind == RecordKind::User) {
        for (_, secret) in user.secrets().filter(|(field, _)| *field == "passwordHash") {
            if let Some(hash) = secrets.value(&secret)? {
                check_hash(hash.expose_secret(), desired_algorithm(user), &secret)?;
            }
        }
    }
    Ok(())
}

/// Checks the format of a hash. The broker accepts any string, but no password matches a malformed hash.
fn check_hash(hash: &str, algorithm: &str, secret: &SecretRef) -> Result<(), BrokerError> {
    let digest = match algorithm {
        "sha512" => 64,
        "md5" => 16,
        _ => 32,
    };
    if STANDARD.decode(hash).is_ok_and(|hash| hash.len() == SALT + digest) {
        return Ok(());
    }
    let bytes = SALT + digest;
    let reason = format!("expected a {algorithm} password hash: {bytes} bytes in Base64, a 4-byte salt and the digest");
    Err(BrokerError::Secret { secret: secret.to_string(), reason })
}

impl UserEntry {
    fn has_password(&self) -> bool {
        self.password.is_some() || self.password_hash.as_ref().is_none_or(|hash| !hash.is_empty())
    }

    /// Returns the spec's name for the hashing algorithm, or the broker's name if a spec cannot specify the algorithm.
    fn algorithm(&self) -> &str {
        let name = self.hashing_algorithm.as_deref().unwrap_or(DEFAULT_ALGORITHM);
        name.strip_prefix(ALGORITHM_PREFIX).filter(|name| HASHING_ALGORITHMS.contains(name)).unwrap_or(name)
    }
}

impl Broker {
    /// Adds the users to a snapshot of the cluster. Compares their passwords with those of the desired users.
    pub(super) async fn read_users(&self, snapshot: &mut Snapshot, desired: &Topology) -> Result<(), BrokerError> {
        match self.get::<Vec<UserEntry>>("/api/users").await {
            Ok(users) => {
                let ReadRecords { records, not_compared, .. } = records(users, desired, self.secrets())?;
                snapshot.topology.records.extend(records);
                snapshot.record_facts.not_compared.extend(not_compared);
            }
            Err(error) if is_hidden(&error) => drop(snapshot.record_facts.unreadable.insert(RecordKind::User)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns the current fields of the user that a request writes.
    async fn current_user(&self, request: &Request) -> Result<Map<String, Value>, BrokerError> {
        match self.get::<Map<String, Value>>(request.path.as_str()).await {
            Ok(mut current) => {
                // Most 3.8 versions accept only a comma-separated string. Later versions return a list.
                if let Some(tags) = current.get("tags").and_then(Value::as_array) {
                    let tags: Vec<&str> = tags.iter().filter_map(Value::as_str).collect();
                    current.insert("tags".to_owned(), tags.join(",").into());
                }
                Ok(current)
            }
            // A new user has no tags.
            Err(BrokerError::NotFound { .. }) => Ok(Map::from_iter([("tags".to_owned(), "".into())])),
            Err(error) => Err(error),
        }
    }

    /// Replaces the templates in a request that writes a user, and sends the request. If the request changes the
    /// connected user's password, topo uses the new password as soon as the broker requires it.
    pub(super) async fn put_user(&self, request: &Request) -> Result<(), BrokerError> {
        let current = if has_current_fields(request) { self.current_user(request).await? } else { Map::new() };
        let filled = self.secrets().fill(request, &current)?;
        let password = filled.body.as_ref().and_then(|body| body.get("password")).and_then(Value::as_str);
        let is_own = request.path == path("users", &[self.username()]);
        self.set_next_password(password.filter(|_| is_own).map(SecretString::from));
        self.send(&filled).await.map(|_| ()).map_err(|error| self.secrets().redact(error))
    }
}

/// Returns true if the body of a request contains a template for the current value of a field.
fn has_current_fields(request: &Request) -> bool {
    let body = request.body.as_ref().and_then(Value::as_object);
    body.is_some_and(|body| body.values().any(|value| matches!(Template::of(value), Some(Template::Current(_)))))
}

/// Definitions of objects with secrets. Importing them as a definitions file restores the objects.
#[derive(Clone, Default)]
pub struct SecretDefinitions {
    /// The users, with the hashes of their passwords.
    pub users: Vec<Value>,
    /// The permissions of deleted users in all vhosts.
    pub permissions: Vec<Value>,
    /// The topic permissions of deleted users in all vhosts.
    pub topic_permissions: Vec<(VhostName, TopicPermission)>,
    /// The shovels and upstreams, with the passwords in their URIs.
    pub parameters: Vec<Value>,
}

/// An entry of `GET /api/users/USER/topic-permissions`.
#[derive(Deserialize)]
struct TopicPermissionEntry {
    vhost: String,
    exchange: String,
    write: String,
    read: String,
}

/// Omits the definitions, which contain passwords and password hashes.
impl fmt::Debug for SecretDefinitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretDefinitions({} users, {} parameters)", self.users.len(), self.parameters.len())
    }
}

impl SecretDefinitions {
    /// Returns the non-empty lists, keyed as in a definitions file. Excludes the topic permissions.
    pub fn lists(&self) -> BTreeMap<&'static str, &[Value]> {
        let lists =
            [("users", &self.users[..]), ("permissions", &self.permissions[..]), ("parameters", &self.parameters[..])];
        lists.into_iter().filter(|(_, list)| !list.is_empty()).collect()
    }
}

impl Broker {
    /// Returns the definitions of the existing `users`. If a user's value in the map is true, also adds the user's
    /// permissions and topic permissions, which the broker deletes together with the user.
    pub async fn user_definitions(&self, users: &BTreeMap<String, bool>) -> Result<SecretDefinitions, BrokerError> {
        let mut definitions = SecretDefinitions::default();
        for (user, is_deleted) in users {
            match self.get::<Value>(path("users", &[user])).await {
                Ok(entry) => definitions.users.push(entry),
                Err(BrokerError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            }
            if *is_deleted {
                definitions.permissions.extend(self.get::<Vec<Value>>(path("users", &[user, "permissions"])).await?);
                let of_user =
                    self.get::<Vec<TopicPermissionEntry>>(path("users", &[user, "topic-permissions"])).await?;
                let permission = |entry: TopicPermissionEntry| {
                    let TopicPermissionEntry { vhost, exchange, write, read } = entry;
                    let (user, exchange) = (UserName::new(user.as_str()), ExchangeName::new(exchange));
                    (VhostName::new(vhost), TopicPermission { user, exchange, write, read })
                };
                definitions.topic_permissions.extend(of_user.into_iter().map(permission));
            }
        }
        Ok(definitions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(secret: &SecretRef) -> Result<Option<SecretString>, String> {
        Ok(match secret {
            SecretRef::Env(name) if name == "UNSET" => None,
            SecretRef::Env(value) | SecretRef::File(value) => Some(SecretString::from(value.clone())),
        })
    }

    /// Builds a user entry with a password hash.
    fn user(hash: &str, algorithm: Option<&str>) -> UserEntry {
        let algorithm = algorithm.map(|name| format!("{ALGORITHM_PREFIX}{name}"));
        UserEntry {
            name: "u".to_owned(),
            password_hash: Some(hash.to_owned()),
            password: None,
            hashing_algorithm: algorithm,
            tags: None,
        }
    }

    fn is_equal(user: &UserEntry, password: &str) -> bool {
        let secret = SecretRef::Env(password.to_owned());
        compare_password(user, &secret, &Secrets::new(read)).unwrap() == PasswordMatch::Equal
    }

    #[test]
    fn passwords_are_compared_with_the_salt_of_the_broker() {
        // From https://www.rabbitmq.com/docs/passwords#computing-password-hash.
        let documented = user("kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", Some("sha256"));
        assert!(is_equal(&documented, "test12"));
        assert!(!is_equal(&documented, "test1"));
        assert!(!is_equal(&user("", None), "test12"));
        assert!(!is_equal(&user("kI3", None), "test12"));
    }

    #[test]
    fn unset_secret_and_unknown_algorithm_are_not_compared() {
        let secrets = Secrets::new(read);
        let unset = compare_password(&user("kI3G", None), &SecretRef::Env("UNSET".to_owned()), &secrets).unwrap();
        assert!(unset == PasswordMatch::Unknown("environment variable UNSET is not set".to_owned()));
        let other = user("kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", Some("scrypt"));
        let other = compare_password(&other, &SecretRef::Env("x".to_owned()), &secrets).unwrap();
        assert!(matches!(other, PasswordMatch::Unknown(_)));
    }

    #[test]
    fn hashes_of_new_users_are_checked() {
        let fields =
            |hash: &str| Arguments::from([("passwordHash".to_owned(), SecretRef::Env(hash.to_owned()).value())]);
        let of_new = |hash: &str| {
            let user = Record::new(RecordId::named(RecordKind::User, "new"), fields(hash)).unwrap();
            let desired = Topology { records: [(user.id.clone(), user)].into(), ..Topology::missing("v".into()) };
            records(Vec::new(), &desired, &Secrets::new(read)).map(|_| ())
        };
        assert!(of_new("kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR").is_ok());
        assert!(of_new("UNSET").is_ok());
        let error = of_new("test12").unwrap_err().to_string();
        assert!(error.contains("expected a sha256 password hash"), "{error}");
    }

    #[test]
    fn hashes_have_the_length_of_their_algorithm() {
        let secret = SecretRef::Env("HASH".to_owned());
        let hash = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";
        assert!(check_hash(hash, "sha256", &secret).is_ok());
        for (hash, algorithm) in [(hash, "sha512"), (hash, "md5"), ("test12", "sha256"), ("", "sha256")] {
            let error = check_hash(hash, algorithm, &secret).unwrap_err().to_string();
            assert!(!error.contains(hash) || hash.is_empty(), "{error}");
        }
    }
}
