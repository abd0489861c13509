//! Determines the rights that a user lacks for a plan, and the least rights to grant.
//!
//! Sources: `rabbit_auth_backend_internal:check_resource_access` and `rabbit_channel`, 3.8 to 4.3. A permission is a
//! pattern over the name of an object, evaluated like the pattern of a policy; an empty one is `^$`. Topic permissions
//! are not checked.

use super::action::Action;
use super::document::VhostPlan;
use crate::model::names::pattern_of;
use crate::model::record_kinds::Tag;
use crate::model::{Arguments, Binding, ObjectId, QueueName, RecordKind};
use crate::rabbitmq::Pattern;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of names in a pattern; above it, a pattern matches their common prefix.
const MAX_NAMES: usize = 8;
/// The characters that end the first word of a name.
const SEPARATORS: [char; 5] = ['.', '-', '_', ':', '/'];
/// The pattern that matches no object.
const NO_OBJECT: &str = "^$";

/// A user of the management API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name of the user on the broker.
    pub name: String,
    /// The tags of the user.
    pub tags: BTreeSet<String>,
    /// True if the broker's own list contains the permissions, not another backend. Known from 4.0 on.
    pub is_internal: Option<bool>,
}

impl User {
    /// Returns true if the user has a tag, or a tag that includes it.
    pub fn has(&self, tag: Tag) -> bool {
        self.is_administrator()
            || match tag {
                Tag::Policymaker => self.tags.contains("policymaker"),
                Tag::Administrator => false,
            }
    }

    /// Returns true if the user has the tag `administrator`.
    pub fn is_administrator(&self) -> bool {
        self.tags.contains("administrator")
    }
}

/// The permission patterns of a user in a vhost; all are empty if the user has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// To declare and delete.
    pub configure: String,
    /// To publish to an exchange, and to bind to a destination.
    pub write: String,
    /// To consume from a queue, and to bind from a source.
    pub read: String,
}

/// The names of the objects on which each permission is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// To declare and delete.
    pub configure: BTreeSet<String>,
    /// To publish, and to bind to.
    pub write: BTreeSet<String>,
    /// To consume, and to bind from.
    pub read: BTreeSet<String>,
}

/// The rights that a user lacks for the plan of a vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingRights {
    /// The tag `administrator`, which creates vhosts.
    pub administrator: bool,
    /// The tag `policymaker`, which writes policies.
    pub policymaker: bool,
    /// The kinds of records that require a tag which the user lacks.
    pub records: BTreeSet<RecordKind>,
    /// Permissions on objects.
    pub permissions: Needs,
    /// The least patterns that permit the plan, if they differ from those of the user: configure, write and read.
    pub patterns: Option<[String; 3]>,
}

impl Needs {
    /// Returns the needs to declare and delete one object.
    pub fn configure(name: &str) -> Self {
        Self { configure: [name.to_owned()].into(), ..Self::default() }
    }

    /// Returns true if no permissions are needed.
    pub fn is_empty(&self) -> bool {
        self.configure.is_empty() && self.write.is_empty() && self.read.is_empty()
    }

    /// Returns the object names for each permission.
    pub fn by_permission(&self) -> [(&'static str, &BTreeSet<String>); 3] {
        [("configure", &self.configure), ("write", &self.write), ("read", &self.read)]
    }

    /// Returns the needs of a plan that holds this lock.
    fn of(part: &VhostPlan, lock: &QueueName) -> Self {
        let mut needs = Self::configure(lock.as_str());
        part.steps.iter().for_each(|step| needs.add(&step.action));
        needs
    }

    fn add(&mut self, action: &Action) {
        match action {
            Action::DeclareExchange { name, exchange, bindings } => {
                self.declare(name.as_str(), &exchange.arguments, "alternate-exchange");
                bindings.iter().for_each(|binding| self.bind(binding));
            }
            Action::DeclareQueue { name, queue } => {
                self.declare(name.as_str(), &queue.arguments, "x-dead-letter-exchange");
            }
            Action::DeleteExchange { name } => drop(self.configure.insert(name.to_string())),
            Action::DeleteQueue { name, .. } => drop(self.configure.insert(name.as_str().to_owned())),
            Action::Bind { binding } | Action::Unbind { binding, .. } => self.bind(binding),
            // A vhost requires a tag, and so do policies. Topic permissions are planned only if the user may read them,
            // which requires the same tag. Another user may move the messages.
            Action::PutVhost { .. }
            | Action::PutTopicPermission { .. }
            | Action::PutPolicy { .. }
            | Action::DeletePolicy { .. }
            | Action::PutRecord { .. }
            | Action::DeleteRecord { .. }
            | Action::MoveMessages { .. } => {}
        }
    }

    /// Adds the needs of an object that sends messages to an exchange: read for the object, and write for the exchange.
    fn declare(&mut self, name: &str, arguments: &Arguments, argument: &str) {
        self.configure.insert(name.to_owned());
        if let Some(exchange) = arguments.get(argument).and_then(|value| value.as_text()) {
            self.read.insert(name.to_owned());
            self.write.insert(permission_name(exchange).to_owned());
        }
    }

    fn bind(&mut self, binding: &Binding) {
        self.write.insert(binding.destination.name().to_owned());
        self.read.insert(permission_name(binding.source.as_str()).to_owned());
    }

    /// Returns the needs that a permission does not cover. A pattern that topo cannot evaluate counts as one that
    /// matches.
    fn beyond(&self, permission: &Permission) -> Self {
        let beyond = |names: &BTreeSet<String>, pattern: &str| {
            let pattern = Pattern::new(if pattern.is_empty() { NO_OBJECT } else { pattern });
            names.iter().filter(|name| pattern.matches(name) == Some(false)).cloned().collect()
        };
        Self {
            configure: beyond(&self.configure, &permission.configure),
            write: beyond(&self.write, &permission.write),
            read: beyond(&self.read, &permission.read),
        }
    }

    /// Returns the patterns that grant these permissions in addition to those of the user.
    fn patterns(&self, permission: &Permission) -> [String; 3] {
        [
            pattern(&self.configure, &permission.configure),
            pattern(&self.write, &permission.write),
            pattern(&self.read, &permission.read),
        ]
    }
}

/// Returns the rights that a user lacks for the plan of a vhost. `permission` is `None` if the user may not read it:
/// then only tags are checked.
pub fn lacking(part: &VhostPlan, lock: &QueueName, user: &User, permission: Option<&Permission>) -> MissingRights {
    let mut lacking = MissingRights::default();
    let does = |is_such: fn(&Action) -> bool| part.steps.iter().any(|step| is_such(&step.action));
    if part.steps.is_empty() {
        return lacking;
    }
    let is_policy = |action: &Action| matches!(action, Action::PutPolicy { .. } | Action::DeletePolicy { .. });
    if does(is_policy) && !user.has(Tag::Policymaker) {
        lacking.policymaker = true;
    }
    let kinds = part.steps.iter().filter_map(|step| match step.action.object() {
        ObjectId::Record(id) => Some(id.kind),
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Queue(_) | ObjectId::Binding(_) => {
            None
        }
    });
    lacking.records = kinds.filter(|kind| !user.has(kind.row().writer)).collect();
    let needs = Needs::of(part, lock);
    if does(|action| matches!(action, Action::PutVhost { .. })) && !user.is_administrator() {
        lacking.administrator = true;
        if part.creates_vhost() {
            lacking.patterns = Some(needs.patterns(&Permission::default()));
        }
    }
    if let Some(permission) = permission {
        let beyond = needs.beyond(permission);
        lacking.patterns = (!beyond.is_empty()).then(|| beyond.patterns(permission));
        lacking.permissions = beyond;
    }
    lacking
}

/// Returns the name of an exchange in permissions.
fn permission_name(exchange: &str) -> &str {
    if exchange.is_empty() { "amq.default" } else { exchange }
}

/// Returns the least pattern for these names, followed by the current pattern of the user.
fn pattern(names: &BTreeSet<String>, present: &str) -> String {
    let present = if present.is_empty() { NO_OBJECT } else { present };
    if names.is_empty() {
        return present.to_owned();
    }
    let added = added(names);
    if present == NO_OBJECT { added } else { format!("{added}|{present}") }
}

/// Returns a pattern for these names. Many names with the same first word become their common prefix, which matches
/// more names but is readable.
pub fn added(names: &BTreeSet<String>) -> String {
    let exact = || names.iter().map(|name| pattern_of(name)).collect::<Vec<_>>().join("|");
    if names.len() <= MAX_NAMES {
        return exact();
    }
    let mut stacks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in names {
        let word = name.find(SEPARATORS).map_or(name.as_str(), |end| &name[..end]);
        stacks.entry(word).or_default().push(name);
    }
    if stacks.len() > MAX_NAMES {
        return exact();
    }
    let patterns = stacks.values().map(|names| match names[..] {
        [name] => pattern_of(name),
        _ => prefix_pattern(names),
    });
    patterns.collect::<Vec<_>>().join("|")
}

/// Returns the pattern of all names with the common prefix of these. They are sorted, so the first and the last one
/// determine the prefix.
fn prefix_pattern(names: &[&str]) -> String {
    let (first, last) = names.first().zip(names.last()).map_or(("", ""), |(first, last)| (*first, *last));
    let common: String =
        first.chars().zip(last.chars()).take_while(|(one, other)| one == other).map(|it| it.0).collect();
    let whole = pattern_of(&common);
    whole.strip_suffix('$').map(str::to_owned).unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn patterns_keep_the_permissions_of_the_user() {
        assert_eq!(pattern(&names(&["a.b"]), "^x"), r"^a\.b$|^x");
        assert_eq!(pattern(&names(&["a", "b"]), ""), "^a$|^b$");
        assert_eq!(pattern(&names(&["a"]), "^$"), "^a$");
        assert_eq!(pattern(&names(&[]), ""), "^$");
        assert_eq!(pattern(&names(&[]), "^x"), "^x");
    }

    #[test]
    fn many_names_become_their_prefix() {
        let many: BTreeSet<String> = (0..20).map(|number| format!("shop.$q{number}")).collect();
        assert_eq!(added(&many), r"^shop\.\$q");
        // The lock is one of the names of each plan.
        let with_lock = many.iter().cloned().chain(["topo.lock".to_owned()]).collect();
        assert_eq!(added(&with_lock), r"^shop\.\$q|^topo\.lock$");
        let escaped: BTreeSet<String> = (0..20).map(|number| format!("a.b${number}")).collect();
        assert_eq!(added(&escaped), r"^a\.b\$");
        // The pattern must not match everything.
        let apart: BTreeSet<String> = (0..20).map(|number| format!("{number}")).collect();
        assert_eq!(added(&apart).split('|').count(), 20);
    }

    #[test]
    fn empty_pattern_grants_nothing() {
        let needs = Needs { read: names(&["amq.default"]), ..Needs::configure("q") };
        assert_eq!(needs.beyond(&Permission::default()), needs);
        let some = Permission { configure: "q".to_owned(), ..Permission::default() };
        assert_eq!(needs.beyond(&some), Needs { read: names(&["amq.default"]), ..Needs::default() });
    }
}
