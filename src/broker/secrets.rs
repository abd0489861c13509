//! Reads the values of secrets once, puts them into requests, and hides errors that contain them. No other type contains
//! these values.

use super::error::BrokerError;
use crate::model::SecretRef;
use crate::model::secret::Template;
use crate::plan::request::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A function that reads the value of a secret; `None` if it is not set. The error is the reason why the value cannot be
/// read or used. The caller provides the function, because this module reads neither files nor the environment.
pub type ReadSecret = fn(&SecretRef) -> Result<Option<SecretString>, String>;

/// The minimum length of a value that topo searches for in errors. Shorter values occur in ordinary words.
const SHORTEST: usize = 4;

/// The values of secrets. Each value is read once, when it is first used.
pub struct Secrets {
    read: ReadSecret,
    values: Mutex<BTreeMap<SecretRef, Result<Option<SecretString>, String>>>,
}

impl Secrets {
    /// Creates an empty collection.
    pub fn new(read: ReadSecret) -> Self {
        Self { read, values: Mutex::default() }
    }

    /// Returns the value of a secret; `None` if it is not set.
    ///
    /// # Errors
    /// [`BrokerError::Secret`] if the value cannot be read or used, for example because it is empty.
    pub fn value(&self, secret: &SecretRef) -> Result<Option<SecretString>, BrokerError> {
        // No update leaves an inconsistent state, so a poisoned mutex can be used.
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.entry(secret.clone()).or_insert_with(|| (self.read)(secret));
        value.clone().map_err(|reason| BrokerError::Secret { secret: secret.to_string(), reason })
    }

    /// Returns the request with all templates replaced. `current` contains the current fields of the object.
    pub(super) fn fill(&self, request: &Request, current: &Map<String, Value>) -> Result<Request, BrokerError> {
        let mut filled = request.clone();
        if let Some(Value::Object(body)) = &mut filled.body {
            for value in body.values_mut() {
                match Template::of(value) {
                    Some(Template::Secret(secret)) => {
                        let found = self.value(&secret)?.ok_or_else(|| not_set(&secret))?;
                        *value = found.expose_secret().into();
                    }
                    Some(Template::Current(field)) => *value = current.get(&field).cloned().unwrap_or("".into()),
                    None => {}
                }
            }
        }
        Ok(filled)
    }

    /// Replaces an error whose text contains the value of a secret, also percent-encoded or in Base64.
    pub(super) fn redact(&self, error: BrokerError, request: &Request) -> BrokerError {
        let text = format!("{error} {error:?}");
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let contains = |secret: &SecretString| {
            let secret = secret.expose_secret();
            let encoded = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
            secret.len() >= SHORTEST
                && [secret.to_owned(), encoded, STANDARD.encode(secret)].iter().any(|form| text.contains(form.as_str()))
        };
        if !values.values().filter_map(|value| value.as_ref().ok()?.as_ref()).any(contains) {
            return error;
        }
        let reason = "topo hides the response of the broker, because it contains a secret".to_owned();
        let status = if let BrokerError::Unavailable { status, .. } | BrokerError::Refused { status, .. } = &error {
            *status
        } else {
            400
        };
        BrokerError::Refused { request: request.to_string(), status, reason }
    }
}

/// Returns the error for a secret that is required and not set.
pub(super) fn not_set(secret: &SecretRef) -> BrokerError {
    BrokerError::Secret { secret: secret.to_string(), reason: secret.missing() }
}

/// Returns true if a request contains templates.
pub(super) fn has_templates(request: &Request) -> bool {
    let body = request.body.as_ref().and_then(Value::as_object);
    body.is_some_and(|body| body.values().any(|value| Template::of(value).is_some()))
}
