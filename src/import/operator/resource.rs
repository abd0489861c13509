//! The custom resources, the user names of `User` objects, and the variables that replace secrets.

use super::super::definitions::text;
use crate::model::SecretRef;
use crate::model::secret::Template;
use serde_json::Value;
use std::collections::BTreeMap;

/// A custom resource.
pub(super) struct Object<'a> {
    pub(super) kind: &'a str,
    /// The name of the Kubernetes object.
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    /// The namespace and the name of the cluster, or of the connection secret for a cluster outside Kubernetes.
    pub(super) cluster: Option<String>,
    pub(super) spec: &'a Value,
    /// The user name in the status of a `User` object.
    username: Option<&'a str>,
    /// The secrets that can contain the user name of a `User` object.
    credentials: Vec<String>,
    /// The super stream for which the operator created the object.
    pub(super) super_stream: Option<&'a str>,
}

impl<'a> Object<'a> {
    pub(super) fn of(item: &'a Value) -> Option<Self> {
        let (metadata, spec) = (item.get("metadata")?, item.get("spec")?);
        let (kind, name) = (text(item, "kind")?, text(metadata, "name")?);
        let namespace = text(metadata, "namespace").unwrap_or("default");
        let reference = spec.get("rabbitmqClusterReference");
        let cluster = reference.and_then(|reference| {
            let namespace = text(reference, "namespace").unwrap_or(namespace);
            let secret = reference.get("connectionSecret").and_then(|secret| text(secret, "name"));
            let secret = secret.map(|secret| format!("{namespace}/secret:{secret}"));
            text(reference, "name").map(|name| format!("{namespace}/{name}")).or(secret)
        });
        let status = item.get("status");
        let named = |parent: Option<&Value>, field: &str| {
            parent.and_then(|parent| parent.get(field)).and_then(|it| text(it, "name")).map(str::to_owned)
        };
        let credentials = [named(status, "credentials"), named(Some(spec), "importCredentialsSecret")];
        let credentials = credentials.into_iter().flatten().chain([format!("{name}-user-credentials")]).collect();
        let owners = metadata.get("ownerReferences").and_then(Value::as_array).into_iter().flatten();
        let mut streams = owners.filter(|owner| text(owner, "kind") == Some("SuperStream"));
        let super_stream = streams.find_map(|owner| text(owner, "name"));
        let username = status.and_then(|status| text(status, "username"));
        Some(Self { kind, name, namespace, cluster, spec, username, credentials, super_stream })
    }

    /// Returns the object's address as it appears in the output, such as `Queue/orders`.
    pub(super) fn address(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

/// The names of users in RabbitMQ, by the namespace and the name of the `User` object.
pub(super) struct Users(BTreeMap<(String, String), String>);

impl Users {
    /// Reads the name of each user from its status or from a secret.
    pub(super) fn of(items: &[&Value], objects: &[Object<'_>]) -> Self {
        let name = |user: &Object<'_>| {
            let mut secrets = user.credentials.iter();
            let from_secret = || secrets.find_map(|secret| username_in(items, user.namespace, secret));
            user.username.map(str::to_owned).or_else(from_secret)
        };
        let users = objects.iter().filter(|object| object.kind == "User");
        let key = |user: &Object<'_>| (user.namespace.to_owned(), user.name.to_owned());
        Self(users.filter_map(|user| Some((key(user), name(user)?))).collect())
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&str> {
        self.0.get(&(namespace.to_owned(), name.to_owned())).map(String::as_str)
    }
}

/// Returns the user name in a secret; `None` if the documents do not contain the secret, or if it contains no user
/// name.
fn username_in(items: &[&Value], namespace: &str, name: &str) -> Option<String> {
    let is_secret = |item: &&&Value| {
        let metadata = item.get("metadata");
        text(item, "kind") == Some("Secret")
            && metadata.and_then(|it| text(it, "name")) == Some(name)
            && metadata.and_then(|it| text(it, "namespace")).unwrap_or("default") == namespace
    };
    let secret = items.iter().find(is_secret)?;
    let plain = secret.get("stringData").and_then(|data| text(data, "username")).map(str::to_owned);
    let encoded = || {
        use base64::Engine;
        let data = secret.get("data").and_then(|data| text(data, "username"))?;
        String::from_utf8(base64::engine::general_purpose::STANDARD.decode(data.trim()).ok()?).ok()
    };
    plain.or_else(encoded)
}

/// The environment variables for URIs. Each variable is assigned to one URI in one secret.
#[derive(Default)]
pub(super) struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Returns a reference to the environment variable that contains the URI of an object. Objects share a variable
    /// only if they use the same secret and their names result in the same variable name.
    pub(super) fn reference(&mut self, object: &Object<'_>, suffix: &str) -> Value {
        let secret = object.spec.get("uriSecret").and_then(|secret| text(secret, "name")).unwrap_or_default();
        let identity = format!("{}/{secret}/{suffix}", object.namespace);
        let name = text(object.spec, "name").unwrap_or_default();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let word: String = name.chars().map(plain).collect();
        let prefix = if word.starts_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
        let base = format!("{prefix}{word}_{suffix}");
        let candidates = std::iter::once(base.clone()).chain((2..).map(|number| format!("{base}_{number}")));
        let is_free = |name: &String| self.0.get(name).is_none_or(|known| *known == identity);
        let name = candidates.into_iter().find(is_free).unwrap_or(base);
        self.0.insert(name.clone(), identity);
        Template::Secret(SecretRef::Env(name)).to_json()
    }
}
