//! Reads the value of each secret once, and inserts the values into requests. Redacts the broker's response in an error
//! if the response may contain a value.

use super::error::BrokerError;
use crate::model::secret::Template;
use crate::model::{AmqpUri, SecretRef};
use crate::plan::request::Request;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A function that reads the value of a secret; `None` if the secret is not set. The error is the reason why the value
/// cannot be read or used. The caller provides the function, because this module reads neither files nor the
/// environment.
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

    /// Returns the value of a secret; `None` if the secret is not set.
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
                    Some(Template::Current(field)) => {
                        *value = current.get(&field).cloned().ok_or_else(|| no_longer_exists(request))?;
                    }
                    Some(Template::Secret(_) | Template::Uri { .. }) | None => self.fill_value(value)?,
                }
            }
        }
        Ok(filled)
    }

    /// Replaces the value if it is a template for a secret, or for a URI with a secret password.
    fn fill_value(&self, value: &mut Value) -> Result<(), BrokerError> {
        let set = |secret: &SecretRef| self.value(secret)?.ok_or_else(|| not_set(secret));
        match Template::of(value) {
            Some(Template::Secret(secret)) => *value = set(&secret)?.expose_secret().into(),
            Some(Template::Uri { uri, password }) => {
                let password = set(&password)?;
                // The spec contains only valid URIs.
                if let Ok(uri) = AmqpUri::parse(&uri) {
                    *value = uri.with_password(password.expose_secret()).expose().into();
                }
            }
            Some(Template::Current(_)) | None => {}
        }
        Ok(())
    }

    /// Returns a request that writes a shovel or an upstream, with all templates in `fields` replaced.
    pub(super) fn fill_uris(&self, request: &Request, fields: &[&str]) -> Result<Request, BrokerError> {
        let mut filled = request.clone();
        for field in fields {
            let Some(uris) = filled.body.as_mut().and_then(|body| body.get_mut("value")?.get_mut(field)) else {
                continue;
            };
            match uris.as_array_mut() {
                Some(items) => items.iter_mut().try_for_each(|item| self.fill_value(item))?,
                None => self.fill_value(uris)?,
            }
        }
        Ok(filled)
    }

    /// Redacts the broker's response in the error for a request with URIs if the response may contain a URI or a
    /// secret. Some responses repeat the URI (3.8 to 4.3).
    pub(super) fn redact_uris(&self, mut error: BrokerError) -> BrokerError {
        let is_about_uri = |text: &str| ["@", "URI"].iter().any(|part| text.contains(part));
        redact_texts(&mut error, |text| is_about_uri(text) || self.occurs_in(text));
        error
    }

    /// Returns true if a string contains the value of a secret that topo has read. If the value is a URI, also returns
    /// true if the string contains the password in the URI.
    pub fn occurs_in(&self, text: &str) -> bool {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let is_in_text = |secret: &SecretString| {
            let secret = secret.expose_secret();
            let password = AmqpUri::parse(secret).ok().and_then(|uri| uri.password().map(str::to_owned));
            [Some(secret.to_owned()), password].into_iter().flatten().any(|secret| text.contains(&secret))
        };
        values.values().flatten().flatten().any(is_in_text)
    }

    /// Redacts the broker's response in the error for a request that contains secrets, because the response may repeat
    /// a secret in any form. Keeps a reason that is a single word, such as `credential_validation_failed`, unless the
    /// word contains a secret.
    pub(super) fn redact(&self, mut error: BrokerError) -> BrokerError {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let is_secret =
            |text: &str| values.values().flatten().flatten().any(|secret| text.contains(secret.expose_secret()));
        let is_word =
            |text: &str| text.len() <= MAX_WORD_LENGTH && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        redact_texts(&mut error, |text| !is_word(text) || is_secret(text));
        error
    }
}

/// Redacts each string from the broker in an error if the string may contain a secret. Always removes the content type
/// of a response that is not from a management API.
fn redact_texts(error: &mut BrokerError, can_contain_secret: impl Fn(&str) -> bool) {
    let hide = |text: &mut String| {
        if can_contain_secret(text) {
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
    | BrokerError::Malformed { detail: reason, .. } = error
    {
        hide(reason);
    } else if let BrokerError::NotManagementApi { content_type, excerpt, .. } = error {
        *content_type = None;
        hide(excerpt);
    }
}

/// The replacement for a string from the broker that may contain a secret.
const HIDDEN: &str = "topo hides the broker's response because it may contain a secret";
/// The maximum length of a reason that is a single word.
const MAX_WORD_LENGTH: usize = 40;

/// Returns the error for a user that another client deleted after topo made the plan.
fn no_longer_exists(request: &Request) -> BrokerError {
    BrokerError::NotFound { request: request.to_string(), reason: "the user no longer exists".to_owned() }
}

/// Returns the error for a required secret that is not set.
fn not_set(secret: &SecretRef) -> BrokerError {
    BrokerError::Secret { secret: secret.to_string(), reason: secret.missing() }
}
