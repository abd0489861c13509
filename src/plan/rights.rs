//! Determines the rights that a user lacks for a plan, and the patterns to grant.
//!
//! Sources: `rabbit_auth_backend_internal:check_resource_access` and `rabbit_channel`, 3.8 to 4.3. A permission is a
//! pattern that the broker matches against object names in the same way as a policy pattern. An empty permission is
//! equivalent to `^$`. Topic permissions are not checked.

use super::action::Action;
use super::document::{Step, VhostPlan};
use crate::model::names::pattern_of;
use crate::model::record_kinds::Tag;
use crate::model::{Arguments, Binding, ObjectId, QueueName, RecordKind};
use crate::rabbitmq::Pattern;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of names that a pattern lists. If there are more names, the pattern matches common prefixes
/// instead.
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
    /// True if the broker itself, rather than a backend such as LDAP, stores the user and the permissions. `None` on
    /// RabbitMQ 3.13.3 and earlier, which do not report this property.
    pub is_internal: Option<bool>,
}

impl User {
    /// Returns true if the user has the tag, or a tag that implies it.
    pub fn has(&self, tag: Tag) -> bool {
        self.is_administrator()
            || match tag {
                Tag::Policymaker => self.tags.contains("policymaker"),
                Tag::Administrator => false,
            }
    }

    /// Returns true if the user has the `administrator` tag.
    pub fn is_administrator(&self) -> bool {
        self.tags.contains("administrator")
    }
}

/// The permission patterns of a user in a vhost. All patterns are empty if the user has no permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// The pattern for the objects that the user may declare and delete.
    pub configure: String,
    /// The pattern for the exchanges to which the user may publish, and for the destinations of bindings.
    pub write: String,
    /// The pattern for the queues from which the user may consume, and for the sources of bindings.
    pub read: String,
}

/// The names of the objects for which each permission is required.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The objects to declare or delete.
    pub configure: BTreeSet<String>,
    /// The exchanges to publish to, and the destinations of bindings.
    pub write: BTreeSet<String>,
    /// The queues to consume from, and the sources of bindings.
    pub read: BTreeSet<String>,
}

/// The rights that a user lacks for a vhost's plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingRights {
    /// True if the plan creates or changes the vhost, and the user lacks the required `administrator` tag.
    pub administrator: bool,
    /// True if the plan writes or deletes policies, and the user lacks the required `policymaker` tag.
    pub policymaker: bool,
    /// The record kinds that the plan writes or deletes, and that require a tag that the user lacks.
    pub records: BTreeSet<RecordKind>,
    /// The permissions that the user lacks.
    pub permissions: Needs,
    /// The configure, write and read patterns to grant. `None` if the user's current patterns are sufficient. If the
    /// current patterns are unknown, set only if the plan creates the vhost and the user is not an administrator.
    pub patterns: Option<[String; 3]>,
}

impl Needs {
    /// Returns the permissions that are required to declare and delete one object.
    pub fn configure(name: &str) -> Self {
        Self { configure: [name.to_owned()].into(), ..Self::default() }
    }

    /// Returns true if no permissions are required.
    pub fn is_empty(&self) -> bool {
        self.configure.is_empty() && self.write.is_empty() && self.read.is_empty()
    }

    /// Returns the object names for each permission.
    pub fn by_permission(&self) -> [(&'static str, &BTreeSet<String>); 3] {
        [("configure", &self.configure), ("write", &self.write), ("read", &self.read)]
    }

    /// Returns the permissions that the steps of a plan and its lock queue require.
    pub(super) fn of(steps: &[Step], lock: &str) -> Self {
        let mut needs = Self::configure(lock);
        steps.iter().for_each(|step| needs.add(&step.action));
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
            // Vhosts, policies and records require tags. Topic permissions are planned only if the user may read them,
            // which requires the same tag as writing them. A different user may move the messages.
            Action::PutVhost { .. }
            | Action::PutTopicPermission { .. }
            | Action::PutPolicy { .. }
            | Action::DeletePolicy { .. }
            | Action::PutRecord { .. }
            | Action::DeleteRecord { .. }
            | Action::MoveMessages { .. } => {}
        }
    }

    /// Adds the permissions to declare an object. If `argument` specifies an exchange, the broker also requires read
    /// permission on the object and write permission on the exchange.
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

    /// Returns the required permissions that a user's current permission does not grant. A pattern that topo cannot
    /// evaluate is treated as matching.
    pub(super) fn missing_from(&self, permission: &Permission) -> Self {
        self.without_grant(permission, |granted| granted == Some(false))
    }

    /// Returns the required permissions that a permission does not grant or might not grant.
    pub(super) fn not_certain_in(&self, permission: &Permission) -> Self {
        self.without_grant(permission, |granted| granted != Some(true))
    }

    fn without_grant(&self, permission: &Permission, is_missing: fn(Option<bool>) -> bool) -> Self {
        let missing = |names: &BTreeSet<String>, pattern: &str| {
            let pattern = Pattern::new(if pattern.is_empty() { NO_OBJECT } else { pattern });
            names.iter().filter(|name| is_missing(pattern.matches(name))).cloned().collect()
        };
        Self {
            configure: missing(&self.configure, &permission.configure),
            write: missing(&self.write, &permission.write),
            read: missing(&self.read, &permission.read),
        }
    }

    /// Returns the patterns that grant these permissions in addition to the user's current permissions.
    fn patterns(&self, permission: &Permission) -> [String; 3] {
        [
            pattern(&self.configure, &permission.configure),
            pattern(&self.write, &permission.write),
            pattern(&self.read, &permission.read),
        ]
    }
}

/// Returns the rights that a user lacks for a vhost's plan. `permission` is the user's current permission; `None` if
/// the permission is unknown. In that case, only tags are checked.
pub fn missing_rights(
    part: &VhostPlan,
    lock: &QueueName,
    user: &User,
    permission: Option<&Permission>,
) -> MissingRights {
    let mut missing = MissingRights::default();
    let has_step = |matches: fn(&Action) -> bool| part.steps.iter().any(|step| matches(&step.action));
    if part.steps.is_empty() {
        return missing;
    }
    let is_policy = |action: &Action| matches!(action, Action::PutPolicy { .. } | Action::DeletePolicy { .. });
    if has_step(is_policy) && !user.has(Tag::Policymaker) {
        missing.policymaker = true;
    }
    let kinds = part.steps.iter().filter_map(|step| match step.action.object() {
        ObjectId::Record(id) => Some(id.kind),
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Queue(_) | ObjectId::Binding(_) => {
            None
        }
    });
    missing.records = kinds.filter(|kind| !user.has(kind.row().writer)).collect();
    let needs = Needs::of(&part.steps, lock.as_str());
    if has_step(|action| matches!(action, Action::PutVhost { .. })) && !user.is_administrator() {
        missing.administrator = true;
        if part.creates_vhost() {
            missing.patterns = Some(needs.patterns(&Permission::default()));
        }
    }
    if let Some(permission) = permission {
        let permissions = needs.missing_from(permission);
        missing.patterns = (!permissions.is_empty()).then(|| permissions.patterns(permission));
        missing.permissions = permissions;
    }
    missing
}

/// Returns the name that permissions use for an exchange: `amq.default` for the default exchange.
pub(super) fn permission_name(exchange: &str) -> &str {
    if exchange.is_empty() { "amq.default" } else { exchange }
}

/// Returns a pattern for these names, followed by the user's current pattern.
fn pattern(names: &BTreeSet<String>, present: &str) -> String {
    let present = if present.is_empty() { NO_OBJECT } else { present };
    if names.is_empty() {
        return present.to_owned();
    }
    let added = pattern_for(names);
    if present == NO_OBJECT { added } else { format!("{added}|{present}") }
}

/// Returns a pattern for these names. If there are many names, the pattern matches the common prefix of names with the
/// same first word. Such a pattern matches more names, but is easier to read. If there are also many first words, the
/// pattern lists all names.
pub fn pattern_for(names: &BTreeSet<String>) -> String {
    let exact = || names.iter().map(|name| pattern_of(name)).collect::<Vec<_>>().join("|");
    if names.len() <= MAX_NAMES {
        return exact();
    }
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in names {
        let word = name.find(SEPARATORS).map_or(name.as_str(), |end| &name[..end]);
        groups.entry(word).or_default().push(name);
    }
    if groups.len() > MAX_NAMES {
        return exact();
    }
    let patterns = groups.values().map(|names| match names[..] {
        [name] => pattern_of(name),
        _ => prefix_pattern(names),
    });
    patterns.collect::<Vec<_>>().join("|")
}

/// Returns a pattern for all names that start with the common prefix of `names`. The names are sorted, so the first and
/// last names determine the prefix.
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
    fn many_names_are_collapsed_to_their_prefix() {
        let many: BTreeSet<String> = (0..20).map(|number| format!("shop.$q{number}")).collect();
        assert_eq!(pattern_for(&many), r"^shop\.\$q");
        // Every plan requires permissions for the lock queue.
        let with_lock = many.iter().cloned().chain(["topo.lock".to_owned()]).collect();
        assert_eq!(pattern_for(&with_lock), r"^shop\.\$q|^topo\.lock$");
        let escaped: BTreeSet<String> = (0..20).map(|number| format!("a.b${number}")).collect();
        assert_eq!(pattern_for(&escaped), r"^a\.b\$");
        // The pattern must not match everything.
        let unrelated: BTreeSet<String> = (0..20).map(|number| format!("{number}")).collect();
        assert_eq!(pattern_for(&unrelated).split('|').count(), 20);
    }

    #[test]
    fn empty_pattern_grants_nothing() {
        let needs = Needs { read: names(&["amq.default"]), ..Needs::configure("q") };
        assert_eq!(needs.missing_from(&Permission::default()), needs);
        let some = Permission { configure: "q".to_owned(), ..Permission::default() };
        assert_eq!(needs.missing_from(&some), Needs { read: names(&["amq.default"]), ..Needs::default() });
    }
}
