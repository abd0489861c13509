//! References to secrets. Specs, plans and topologies contain only references, never the values.

use super::arguments::{ArgumentValue, Arguments};
use serde_json::{Value, json};
use std::fmt;

/// The key of a reference to an environment variable.
const ENV: &str = "env";
/// The key of a reference to a file.
const FILE: &str = "file";
/// In a request body, the key that contains a reference.
const TEMPLATE: &str = "$secret";
/// In a request body, the key that contains a URI without its password.
const URI: &str = "$uri";
/// The key next to [`URI`] that contains the reference to the password.
const PASSWORD: &str = "password";
/// In a request body, the key that contains the name of a field. topo sends the current value of that field.
const CURRENT: &str = "$current";

/// The source of a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretRef {
    /// The environment variable with this name.
    Env(String),
    /// The file with this path. topo ignores one line break at the end.
    File(String),
}

/// A placeholder in a request body. topo replaces the placeholder immediately before it sends the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Template {
    /// The value of a secret.
    Secret(SecretRef),
    /// The current value of this field in the object.
    Current(String),
    /// A URI with a password.
    Uri {
        /// The URI without the password.
        uri: String,
        /// The password.
        password: SecretRef,
    },
}

impl SecretRef {
    /// Returns the reference that a value such as `{env: NAME}` represents; `None` for any other value.
    pub fn of(value: &ArgumentValue) -> Option<Self> {
        let ArgumentValue::Table(table) = value else { return None };
        let text = |key: &str| table.get(key).and_then(ArgumentValue::as_text).map(str::to_owned);
        text(ENV).map(Self::Env).or_else(|| text(FILE).map(Self::File)).filter(|_| table.len() == 1)
    }

    /// Returns the name of the environment variable; `None` for a file.
    pub fn variable(&self) -> Option<&str> {
        if let Self::Env(name) = self { Some(name) } else { None }
    }

    /// Describes a secret whose value is missing: `environment variable NAME is not set`, `file PATH does not exist`.
    pub fn missing(&self) -> String {
        match self {
            Self::Env(_) => format!("{self} is not set"),
            Self::File(_) => format!("{self} does not exist"),
        }
    }

    /// Returns the value that represents the reference in a record.
    pub fn value(&self) -> ArgumentValue {
        let (key, text) = match self {
            Self::Env(name) => (ENV, name),
            Self::File(path) => (FILE, path),
        };
        ArgumentValue::Table(Arguments::from([(key.to_owned(), text.as_str().into())]))
    }
}

/// Writes the source: `environment variable NAME`, `file PATH`.
impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "environment variable {name}"),
            Self::File(path) => write!(f, "file {path}"),
        }
    }
}

impl Template {
    /// Returns the JSON value that represents the template in a request body.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Secret(secret) => json!({ TEMPLATE: json!(secret.value()) }),
            Self::Current(field) => json!({ CURRENT: field }),
            Self::Uri { uri, password } => json!({ URI: uri, PASSWORD: json!(password.value()) }),
        }
    }

    /// Returns the template that a JSON value represents; `None` for any other value.
    pub fn of(value: &Value) -> Option<Self> {
        let table = value.as_object()?;
        if let (Some(Value::String(uri)), Some(password), 2) = (table.get(URI), table.get(PASSWORD), table.len()) {
            return Some(Self::Uri { uri: uri.clone(), password: reference(password)? });
        }
        let table = Some(table).filter(|table| table.len() == 1)?;
        if let Some(field) = table.get(CURRENT) {
            return field.as_str().map(|field| Self::Current(field.to_owned()));
        }
        reference(table.get(TEMPLATE)?).map(Self::Secret)
    }
}

/// Returns the reference that a JSON value represents; `None` for any other value.
fn reference(value: &Value) -> Option<SecretRef> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    text(ENV).map(SecretRef::Env).or_else(|| text(FILE).map(SecretRef::File))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_and_templates_round_trip() {
        for secret in [SecretRef::Env("PW".to_owned()), SecretRef::File("/run/secrets/pw".to_owned())] {
            assert_eq!(SecretRef::of(&secret.value()).as_ref(), Some(&secret));
            let uri = Template::Uri { uri: "amqp://u@h".to_owned(), password: secret.clone() };
            for template in [Template::Secret(secret), uri] {
                assert_eq!(Template::of(&template.to_json()), Some(template));
            }
        }
        let current = Template::Current("tags".to_owned());
        assert_eq!(Template::of(&current.to_json()), Some(current));
        for other in [
            json!("x"),
            json!({}),
            json!({"a": 1}),
            json!({"$secret": 1}),
            json!({"$current": 1}),
            json!({"$uri": "x"}),
        ] {
            assert_eq!(Template::of(&other), None);
        }
    }
}
