//! Checks users, and checks references to secrets. A spec never contains the value of a secret, because specs, plans
//! and logs are stored and shared.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::node::{Entry, Location, Node, Value};
use super::problem::SECRET_AS_TEXT;
use super::shape::{Key, Keys, Object, Shape, key};
use super::spec_types::Spec;
use super::value;
use crate::model::{ObjectId, RecordId, RecordKind};

/// The mappings that refer to a secret.
pub(super) const REFERENCES: &[&Object] = &[&ENV, &FILE];

static ENV: Object = Object {
    what: "a reference to an environment variable",
    name: "SecretFromEnvironment",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] =
            &[key("env", Shape::Text, "The name of the environment variable that contains the secret.")
                .required()
                .with_example("SHOP_APP_PASSWORD")];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static FILE: Object = Object {
    what: "a reference to a file",
    name: "SecretFromFile",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[key(
            "file",
            Shape::Text,
            "The path of the file that contains the secret. A relative path is relative to the working directory. topo ignores \
             one line break at the end of the file.",
        )
        .required()
        .with_example("/run/secrets/shop-app")];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

/// Returns true if a spec may mistakenly contain a literal secret in this mapping or in place of it.
pub(super) fn can_contain_secrets(kind: &Object) -> bool {
    let has_secret = |kind: &Object| kind.keys().iter().any(|key| matches!(key.shape, Shape::Secret(_)));
    let is_nested = |key: &Key| if let Shape::Object(nested) = key.shape { has_secret(nested) } else { false };
    let is_reference = || REFERENCES.iter().any(|reference| std::ptr::eq(*reference, kind));
    has_secret(kind) || kind.keys().iter().any(is_nested) || is_reference()
}

/// Returns true, and reports an error, for a literal value or a list where a mapping that can contain secrets is
/// expected. The message does not contain the value.
pub(super) fn report_value(
    node: &Node,
    kind: &Object,
    subject: &str,
    at: Location,
    diagnostics: &mut Diagnostics,
) -> bool {
    let found = match &node.value {
        Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {
            "a literal value, which may be a secret"
        }
        Value::List(_) => "a list",
        Value::Null(_) | Value::Table(_) => return false,
    };
    if !can_contain_secrets(kind) {
        return false;
    }
    let position = if node.at.start == node.at.end { at } else { node.at };
    let message = format!("expected a mapping for {subject}, found {found}");
    let secret = if position == node.at { node.extent() } else { position };
    let diagnostic = Diagnostic::error("wrong-type", message, position).label("expected a mapping").masking(secret);
    diagnostics.push(match node.used_at {
        Some(used_at) => diagnostic.also(used_at, "used here"),
        None => diagnostic,
    });
    true
}

/// Checks the value of a secret if the value is not a mapping. Only `none` can be valid. Messages never contain the
/// value.
pub(super) fn check_non_mapping(
    node: &Node,
    can_be_none: bool,
    subject: &str,
    at: Location,
    diagnostics: &mut Diagnostics,
) -> Option<Node> {
    match &node.value {
        Value::Text(text) if can_be_none && text == "none" => Some(node.clone()),
        Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {
            let message = format!("expected a reference to a secret for {subject}, found a literal value");
            let position = if node.at.start == node.at.end { at } else { node.at };
            let mut diagnostic = Diagnostic::error(SECRET_AS_TEXT, message, position)
                .label("a literal secret")
                .hint("use `{env: NAME}` or `{file: PATH}`; if this spec was committed or shared, change the secret");
            if let Some(used_at) = node.used_at {
                diagnostic = diagnostic.also(used_at, "used here");
            }
            diagnostics.push(diagnostic);
            None
        }
        Value::Null(_) | Value::List(_) | Value::Table(_) => {
            let references = "`{env: NAME}` or `{file: PATH}`";
            let expected =
                if can_be_none { "`{env: NAME}`, `{file: PATH}` or `none`".to_owned() } else { references.to_owned() };
            value::report_wrong_type(node, subject, &expected, None, at, diagnostics);
            None
        }
    }
}

/// Reports several password keys for one user, and `hashingAlgorithm` without `passwordHash`.
pub(super) fn check_user(user: &Node, diagnostics: &mut Diagnostics) {
    let passwords: Vec<&Entry> =
        ["password", "initialPassword", "passwordHash"].iter().filter_map(|key| user.entry(key)).collect();
    if let [first, second, ..] = passwords[..] {
        let message = format!("`{}` and `{}` are mutually exclusive", first.key, second.key);
        let diagnostic = Diagnostic::error("conflicting-keys", message, second.at).also(first.at, "first set here");
        diagnostics.push(diagnostic.hint("keep one of them"));
    }
    if let Some(algorithm) = user.entry("hashingAlgorithm").filter(|_| user.entry("passwordHash").is_none()) {
        let message = "`hashingAlgorithm` needs `passwordHash`";
        let hint = "remove `hashingAlgorithm`: the broker selects the algorithm for a password";
        diagnostics.push(Diagnostic::error("missing-key", message, algorithm.at).hint(hint));
    }
}

/// Reports declared permissions for removed users. The broker deletes the permissions together with the user.
pub(super) fn refuse_permissions_of_removed_users(cluster: &Spec, vhosts: &[Spec], diagnostics: &mut Diagnostics) {
    for removed in &cluster.removed {
        let ObjectId::Record(RecordId { kind: RecordKind::User, key }) = &removed.value else { continue };
        for (id, permission) in vhosts.iter().flat_map(|vhost| &vhost.records) {
            if id.kind.row().is_named_after_users() && id.key.first() == key.first() {
                let message = format!("the {id} belongs to a removed user");
                let diagnostic = Diagnostic::error("removed-and-declared", message, permission.at);
                diagnostics.push(diagnostic.also(removed.at, "removed here").hint("remove one of the two entries"));
            }
        }
    }
}
