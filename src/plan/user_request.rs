//! Builds the body of the request that writes a user.
//!
//! A PUT request without a password deletes the user's password, and a PUT request with the same password stores a new
//! salt (3.8 to 4.3). Therefore, topo sends the current hash if the password does not change, and sends no request for
//! an unchanged user.

use crate::model::secret::Template;
use crate::model::{ArgumentValue, Record, SecretRef};
use serde_json::{Value, json};

/// Returns the body of the request that writes a user. Templates represent secrets and the current values of fields
/// that the request keeps.
pub(super) fn body(user: &Record, keeps_password: bool) -> Value {
    let current = |field: &str| Template::Current(field.to_owned()).to_json();
    // A string, not a list: 3.8 responds to a list with 500, and later versions accept both.
    let tags = match user.fields.contains_key("tags") {
        true => json!(user.tags().collect::<Vec<_>>().join(",")),
        false => current("tags"),
    };
    let field = |name: &str| user.fields.get(name);
    let secret = |name: &str| field(name).and_then(SecretRef::of).map(|secret| Template::Secret(secret).to_json());
    if keeps_password {
        let algorithm = current("hashing_algorithm");
        return json!({"tags": tags, "password_hash": current("password_hash"), "hashing_algorithm": algorithm});
    }
    if let Some(password) = secret("password").or_else(|| secret("initialPassword")) {
        return json!({"tags": tags, "password": password});
    }
    if let Some(hash) = secret("passwordHash") {
        let algorithm = field("hashingAlgorithm").and_then(ArgumentValue::as_text).unwrap_or("sha256");
        let algorithm = format!("rabbit_password_hashing_{algorithm}");
        return json!({"tags": tags, "password_hash": hash, "hashing_algorithm": algorithm});
    }
    json!({"tags": tags, "password_hash": ""})
}
