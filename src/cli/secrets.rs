//! Reads the secrets of a spec from the environment and from files, and checks that an apply has all of them.

use super::failure::Failure;
use super::files::is_shell_pipe;
use crate::broker::{Broker, BrokerError};
use crate::model::record_kinds::FieldShape;
use crate::model::{Address, AmqpUri, ObjectId, Record, SecretRef};
use crate::plan::{Action, Info, Plan};
use crate::render::style::clean;
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The maximum size of a secret in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Reads the value of a secret; `None` if the variable is not set or the file does not exist.
///
/// # Errors
/// The reason why the value cannot be used. The reason does not contain the value.
pub(super) fn read(secret: &SecretRef) -> Result<Option<SecretString>, String> {
    let value = match secret {
        SecretRef::Env(name) => match std::env::var(name) {
            Ok(value) => value,
            Err(std::env::VarError::NotPresent) => return Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => return Err("the value is not valid UTF-8".to_owned()),
        },
        SecretRef::File(path) => match read_file(Path::new(path))? {
            Some(value) => value,
            None => return Ok(None),
        },
    };
    if value.is_empty() {
        return Err("the value is empty".to_owned());
    }
    Ok(Some(SecretString::from(value)))
}

/// Reads a file, and removes one line break at its end. Refuses files that are neither regular files nor pipes from the
/// shell, because other files can be endless.
fn read_file(path: &Path) -> Result<Option<String>, String> {
    let file = match std::fs::metadata(path) {
        Ok(found) if found.is_file() || is_shell_pipe(path) => std::fs::File::open(path),
        Ok(_) => return Err("not a regular file".to_owned()),
        Err(error) => Err(error),
    };
    let file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut text = String::new();
    match file.take(MAX_BYTES + 1).read_to_string(&mut text) {
        Ok(_) if text.len() as u64 > MAX_BYTES => {
            return Err(format!("the file is larger than {} KiB", MAX_BYTES >> 10));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::InvalidData => return Err("the value is not valid UTF-8".to_owned()),
        Err(error) => return Err(error.to_string()),
    }
    let line = text.strip_suffix('\n').map_or(&*text, |text| text.strip_suffix('\r').unwrap_or(text));
    Ok(Some(line.to_owned()))
}

/// Refuses an apply if a required secret is not set or cannot be used.
pub(super) fn check_set(broker: &Broker, plan: &Plan) -> Result<(), Failure> {
    let mut missing: BTreeSet<SecretRef> = BTreeSet::new();
    let uris = sent_uris(plan);
    for secret in required(plan) {
        match broker.secrets().value(&secret) {
            Ok(Some(value)) => {
                if let Some(problem) = AmqpUri::parse(value.expose_secret()).err().filter(|_| uris.contains(&secret)) {
                    let reason = format!("the value is not a valid AMQP URI: {problem}");
                    return Err(BrokerError::Secret { secret: secret.to_string(), reason }.into());
                }
            }
            Ok(None) => drop(missing.insert(secret)),
            Err(error) => return Err(error.into()),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let failure = Failure::failed("missing secrets; nothing was changed");
    Err(missing.iter().fold(failure, |failure, secret| failure.because(clean(&secret.missing()))))
}

/// Returns the references to complete URIs that a plan sends.
fn sent_uris(plan: &Plan) -> BTreeSet<SecretRef> {
    let mut sent = BTreeSet::new();
    for step in plan.parts().flat_map(|part| &part.steps) {
        let Action::PutRecord { record, .. } = &step.action else { continue };
        let fields = record.id.fields();
        let is_uri = |name: &str| {
            fields.iter().any(|field| field.name == name && matches!(field.shape, FieldShape::Uris { .. }))
        };
        sent.extend(record.secrets().filter(|(name, _)| is_uri(name)).map(|(_, secret)| secret));
    }
    sent
}

/// Returns the secrets that a plan compares or sends: the secrets in all planned records, except the initial passwords
/// of existing users.
fn required(plan: &Plan) -> BTreeSet<SecretRef> {
    let mut required = BTreeSet::new();
    let targets = &plan.options.targets;
    for part in plan.parts() {
        let is_planned = |record: &Record| {
            let address = Address::of(&part.vhost, &ObjectId::Record(record.id.clone()));
            targets.is_empty() || targets.iter().any(|target| target.matches(address.as_str()))
        };
        for record in part.desired.topology.records.values().filter(|record| is_planned(record)) {
            let compared = record.secrets().filter(|(field, _)| *field != "initialPassword");
            required.extend(compared.map(|(_, secret)| secret));
        }
        for step in &part.steps {
            if let Action::PutRecord { record, keeps_password: false } = &step.action {
                required.extend(record.secrets().map(|(_, secret)| secret));
            }
        }
    }
    required
}

/// Adds an [`Info`] to the plan if it sends secrets to another host over an unencrypted connection.
pub(super) fn report_plain_connection(broker: &Broker, plan: &mut Plan) {
    if broker.is_private() {
        return;
    }
    for part in plan.parts_mut() {
        let sends = |action: &Action| matches!(action, Action::PutRecord { record, keeps_password: false } if record.secrets().next().is_some());
        if part.steps.iter().any(|step| sends(&step.action)) {
            let address = Address::of(&part.vhost, &ObjectId::Vhost);
            let text =
                "applying this plan sends secrets over an unencrypted connection (http://); use https://".to_owned();
            part.infos.push(Info { address, text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: Result<Option<SecretString>, String>) -> Result<Option<String>, String> {
        result.map(|value| value.map(|value| value.expose_secret().to_owned()))
    }

    #[test]
    fn one_line_break_at_the_end_of_a_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        for (content, expected) in [
            ("tulip", Ok(Some("tulip"))),
            ("tulip\n", Ok(Some("tulip"))),
            ("tulip\r\n", Ok(Some("tulip"))),
            (" tulip \n\n", Ok(Some(" tulip \n"))),
            ("\n", Err("the value is empty")),
            ("", Err("the value is empty")),
        ] {
            let path = folder.path().join("secret");
            std::fs::write(&path, content).unwrap();
            let found = text(read(&SecretRef::File(path.display().to_string())));
            let expected = expected.map(|text| text.map(str::to_owned)).map_err(str::to_owned);
            assert_eq!(found, expected, "{content:?}");
        }
    }

    #[test]
    fn unusable_files_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| SecretRef::File(folder.path().join(name).display().to_string());
        assert_eq!(text(read(&path("missing"))), Ok(None));
        assert_eq!(text(read(&path(""))), Err("not a regular file".to_owned()));
        assert_eq!(text(read(&SecretRef::File("/dev/zero".to_owned()))), Err("not a regular file".to_owned()));
        std::fs::write(folder.path().join("large"), "x".repeat(100_000)).unwrap();
        assert_eq!(text(read(&path("large"))), Err("the file is larger than 64 KiB".to_owned()));
        std::fs::write(folder.path().join("latin"), b"t\xfclip").unwrap();
        assert_eq!(text(read(&path("latin"))), Err("the value is not valid UTF-8".to_owned()));
    }
}
