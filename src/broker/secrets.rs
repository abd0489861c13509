//! Reads the values of secrets once, puts them into requests, and hides errors that contain them. No other type contains
//! these values.

use super::error::BrokerError;
use crate::model::SecretRef;
use crate::model::secret::Template;
use crate::plan::request::Request;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A function that reads the value of a secret; `None` if it is not set. The error is the reason why the value cannot be
/// read or used. The caller provides the function, because this module reads neither files nor the environment.
pub type ReadSecret = fn(&SecretRef) -> Result<Option<SecretString>, String>;

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
                    Some(Template::Current(field)) => {
                        *value = current.get(&field).cloned().ok_or_else(|| no_longer_exists(request))?;
                    }
                    None => {}
                }
            }
        }
        Ok(filled)
    }

    /// Hides the text of the broker in the error of a request that contains secrets, because the text can repeat them in
    /// any form. Keeps a reason that is one word, such as `credential_validation_failed`, unless it is a secret.
    pub(super) fn redact(&self, mut error: BrokerError) -> BrokerError {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let is_secret =
            |text: &str| values.values().flatten().flatten().any(|secret| text.contains(secret.expose_secret()));
        let is_word =
            |text: &str| text.len() <= LONGEST_WORD && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let hide = |text: &mut String| {
            if !is_word(text) || is_secret(text) {
                HIDDEN.clone_into(text);
            }
        };
        if let BrokerError::Refused { reason, .. }
        | BrokerError::Unavailable { reason, .. }
        | BrokerError::AccessRefused { reason, .. }
        | BrokerError::WrongTag { reason, .. }
        | BrokerError::Unauthorized { reason, .. }
        | BrokerError::Inequivalent { reason, .. }
        | BrokerError::NotFound { reason, .. }
        | BrokerError::Malformed { detail: reason, .. } = &mut error
        {
            hide(reason);
        } else if let BrokerError::NotManagementApi { content_type, excerpt, .. } = &mut error {
            *content_type = None;
            hide(excerpt);
        }
        error
    }
}

/// The replacement for a text of the broker that can contain a secret.
const HIDDEN: &str = "topo hides the response of the broker, because it can contain a secret";
/// The maximum length of a reason that is one word.
const LONGEST_WORD: usize = 40;

/// Returns the error for a user that another client deleted after the plan.
fn no_longer_exists(request: &Request) -> BrokerError {
    BrokerError::NotFound { request: request.to_string(), reason: "the user no longer exists".to_owned() }
}

/// Returns the error for a secret that is required and not set.
fn not_set(secret: &SecretRef) -> BrokerError {
    BrokerError::Secret { secret: secret.to_string(), reason: secret.missing() }
}
