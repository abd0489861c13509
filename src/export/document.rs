//! Builds the spec for a vhost as a YAML tree, with the sections in their usual order and the bindings below their
//! destinations.

use super::CurrentVhost;
use super::left_out::{Ignored, LeftOut};
use super::objects::{self, binding_tree, dead_letter_exchange, destination_binding, exchange_tree, policy_tree};
use super::recognize::patterns::{Partitions, Recognized};
use super::shared::{Shared, extract_defaults};
use crate::model::count::count;
use crate::model::yaml::{Entry, Text, Tree, entry};
use crate::model::{
    ArgumentValue, Binding, Destination, ExchangeName, Glob, ObjectId, QueueName, RecordId, RecordKind, Topology,
    Vhost, natural,
};
use crate::plan::spec_keys::{self, Parts, QueueKeys, queue_keys};
use crate::rabbitmq::dead_lettering;
use crate::rabbitmq::routing::DeadLettering;
use crate::spec::Wiring;
use std::collections::{BTreeMap, BTreeSet};

/// Comment lines, by the object that they precede.
pub(super) type Comments = BTreeMap<ObjectId, Vec<String>>;

/// The inputs for the exported text.
pub(super) struct Document<'a> {
    pub(super) live: &'a CurrentVhost<'a>,
    pub(super) kept: &'a Topology,
    pub(super) recognized: &'a Recognized,
    pub(super) left_out: &'a LeftOut,
    /// True to write each object completely, without `defaults` and shared mappings.
    pub(super) is_plain: bool,
    /// The comments; `None` to omit them.
    pub(super) comments: Option<&'a Comments>,
}

impl Document<'_> {
    /// Generates the exported text.
    pub(super) fn text(&self) -> Text {
        let mut bindings = self.bindings();
        let names = self.kept.queues.keys().filter(|name| !self.is_generated(&ObjectId::Queue((*name).clone())));
        let mut queues: BTreeMap<QueueName, QueueKeys> =
            names.filter_map(|name| Some((name.clone(), self.keys(name)?))).collect();
        let defaults = if self.is_plain { None } else { extract_defaults(&mut queues) };
        let shared = if self.is_plain { Shared::default() } else { Shared::of(&queues) };
        let (mut queues_section, mut dead_letter_section) = (Vec::new(), Vec::new());
        for (name, keys) in in_natural_order(queues, |name| name.as_str()) {
            let id = ObjectId::Queue(name.clone());
            let bound = bindings.remove(&id);
            let entries = shared.replace(keys.entries());
            let dead_letter_queue = self.recognized.dead_letter_queues.get(&name);
            let exchange_keys = dead_letter_queue.and_then(|it| dead_letter_exchange(&name, it));
            let tree = Tree::table(entries.into_iter().chain(bound).chain(keys.arguments).chain(exchange_keys));
            let section = if dead_letter_queue.is_some() { &mut dead_letter_section } else { &mut queues_section };
            section.push(self.object(id, name.as_str(), tree));
        }
        let exchanges = self.exchanges(&mut bindings);
        let policies =
            self.kept.policies.iter().filter(|(name, _)| !self.is_generated(&ObjectId::Policy((*name).clone())));
        let policies = in_natural_order(policies, |name| name.as_str()).into_iter();
        let policies =
            policies.map(|(name, it)| self.object(ObjectId::Policy(name.clone()), name.as_str(), policy_tree(it)));
        let version = entry("version", Tree::plain(1));
        let mut sections = vec![version, entry("vhost", self.vhost().about(ObjectId::Vhost))];
        sections.extend(self.ignore());
        sections.extend(shared.sections());
        sections.extend(defaults);
        let tables = [
            ("exchanges", exchanges),
            ("queues", queues_section),
            ("deadLetterQueues", dead_letter_section),
            ("superStreams", self.super_streams()),
        ];
        let tables = tables.into_iter().filter(|(_, entries)| !entries.is_empty());
        sections.extend(tables.map(|(name, entries)| entry(name, Tree::table(entries))));
        // The remaining bindings have destinations without an entry in a section.
        let remaining = self.kept.bindings.iter().filter(|it| {
            bindings.contains_key(&it.destination.id()) && !self.is_generated(&ObjectId::Binding((*it).clone()))
        });
        let remaining: Vec<Tree> = in_natural_binding_order(remaining).into_iter().map(binding_tree).collect();
        if !remaining.is_empty() {
            sections.push(entry("bindings", Tree::list(remaining)));
        }
        let policies: Vec<Entry> = policies.collect();
        if !policies.is_empty() {
            sections.push(entry("policies", Tree::table(policies)));
        }
        sections.extend(objects::sections(self.kept, &|id, name, tree| self.object(id, name, tree)));
        Text::of(&sections)
    }

    /// Returns the `ignore` entry with globs for temporary objects that are left out. `--prune` never deletes an object
    /// that one of these globs matches. Returns `None` if there are no such objects.
    fn ignore(&self) -> Option<Entry> {
        let Topology { queues, exchanges, policies, records, .. } = self.kept;
        let is_exported = |glob: &Glob| {
            queues.keys().any(|name| glob.matches(name.as_str()))
                || exchanges.keys().any(|name| glob.matches(name.as_str()))
                || policies.keys().any(|name| glob.matches(name.as_str()))
                || records.keys().filter_map(RecordId::name).any(|name| glob.matches(name))
        };
        let Ignored { globs, omitted } = self.left_out.ignored(is_exported);
        let mut comments = vec!["temporary objects of clients: topo neither reports nor deletes them".to_owned()];
        if omitted > 0 {
            let are = if omitted == 1 { "is" } else { "are" };
            let omitted = count(omitted as u64, "more name");
            comments.push(format!("{omitted} {are} not listed: add a glob that matches only these objects"));
        }
        comments.retain(|_| self.comments.is_some());
        let list = Tree::list(globs.iter().map(|glob| Tree::text(glob.as_str())));
        (!globs.is_empty()).then(|| entry("ignore", list).comments(comments))
    }

    fn keys(&self, name: &QueueName) -> Option<QueueKeys> {
        let dead_letter_queues = &self.recognized.dead_letter_queues;
        let as_dead_letter_queue = dead_letter_queues.get(name);
        let at = |end: &DeadLettering| {
            let mut all = dead_letter_queues.iter();
            all.find(|(name, it)| it.leads_to(name, end)).map(|(name, _)| name.clone())
        };
        let parts = Parts {
            tiered: self.recognized.tiered.get(name),
            is_counted: self.recognized.counted.contains(name),
            dead_letter_queue_at: &at,
            is_dead_letter_queue: as_dead_letter_queue.is_some(),
            has_default_limit: as_dead_letter_queue.is_some_and(|it| it.has_default_limit),
        };
        let wiring = self.recognized.dead_lettering(self.kept, name).map(|(to, by)| (to, by == Wiring::Policy));
        Some(queue_keys(self.kept.queues.get(name)?, wiring, &parts))
    }

    /// Returns the entries of the recognized super streams.
    fn super_streams(&self) -> Vec<Entry> {
        let entry_of = |(name, it): (&ExchangeName, &Partitions)| {
            let stream = self.kept.queues.get(&it.stream)?;
            let keys = QueueKeys { queue_type: None, ..queue_keys(stream, None, &Parts::plain()) };
            let partitions = match &it.keys {
                Some(keys) => entry("bindingKeys", Tree::list(keys.iter().map(|key| Tree::text(key)))),
                None => entry("partitions", Tree::plain(it.count)),
            };
            let tree = Tree::table([partitions].into_iter().chain(keys.entries()));
            Some(self.object(ObjectId::Exchange(name.clone()), name.as_str(), tree))
        };
        let streams = in_natural_order(&self.recognized.super_streams, |name| name.as_str());
        streams.into_iter().filter_map(entry_of).collect()
    }

    fn is_generated(&self, id: &ObjectId) -> bool {
        self.recognized.generated.contains_key(id)
    }

    fn object(&self, id: ObjectId, name: &str, tree: Tree) -> Entry {
        let comments = self.comments.and_then(|all| all.get(&id)).cloned().unwrap_or_default();
        entry(name, tree.about(id)).comments(comments)
    }

    fn vhost(&self) -> Tree {
        let name = Tree::text(self.kept.vhost.as_str());
        let Vhost { description, tags, default_queue_type } = self.kept.settings.clone().unwrap_or_default();
        let description = description.filter(|it| !it.is_empty()).map(|it| entry("description", Tree::text(&it)));
        // An incomplete list would remove the other tags.
        let tags = tags.filter(|tags| !tags.is_empty() && tags.iter().all(|tag| Vhost::is_valid_tag(tag)));
        let tags = tags.map(|tags| entry("tags", Tree::list(tags.iter().map(|tag| Tree::text(tag)))));
        // Omits `classic`, because it is the default. Newer brokers set this type explicitly on new vhosts.
        let kind = default_queue_type.filter(|it| it != "classic").map(|it| entry("defaultQueueType", Tree::text(&it)));
        let more: Vec<Entry> = description
            .into_iter()
            .chain(tags)
            .chain(kind)
            .chain(objects::vhost_keys(self.kept, &|id, name, tree| self.object(id, name, tree)))
            .collect();
        if more.is_empty() { name } else { Tree::table([entry("name", name)].into_iter().chain(more)) }
    }

    /// Returns the `bindings` entry of each exported destination.
    fn bindings(&self) -> BTreeMap<ObjectId, Entry> {
        let mut by_destination: BTreeMap<ObjectId, Vec<Tree>> = BTreeMap::new();
        let written = self.kept.bindings.iter().filter(|it| !self.is_generated(&ObjectId::Binding((*it).clone())));
        for binding in in_natural_binding_order(written) {
            by_destination.entry(binding.destination.id()).or_default().push(destination_binding(binding));
        }
        by_destination.into_iter().map(|(id, bindings)| (id, entry("bindings", Tree::list(bindings)))).collect()
    }

    fn exchanges(&self, bindings: &mut BTreeMap<ObjectId, Entry>) -> Vec<Entry> {
        let mut entries: BTreeMap<&ExchangeName, Entry> = BTreeMap::new();
        for (name, it) in &self.kept.exchanges {
            let id = ObjectId::Exchange(name.clone());
            if !self.is_generated(&id) {
                let tree = exchange_tree(it, bindings.remove(&id));
                entries.insert(name, self.object(id, name.as_str(), tree));
            }
        }
        let referenced_exchanges = self.referenced_exchanges();
        for (name, messages) in &referenced_exchanges {
            let id = ObjectId::Exchange(name.clone());
            let is_missing = !self.live.topology.exchanges.contains_key(name);
            let mut entry = self.object(id, name.as_str(), spec_keys::external_exchange(is_missing));
            if self.comments.is_some() && is_missing {
                entry = entry.comments(vec![spec_keys::missing_exchange(messages)]);
            }
            entries.insert(name, entry);
        }
        in_natural_order(entries, |name| name.as_str()).into_iter().map(|(_, entry)| entry).collect()
    }

    /// Returns the exchanges that exported objects refer to but that are not exported themselves, each with a
    /// description of the messages that it receives.
    fn referenced_exchanges(&self) -> BTreeMap<ExchangeName, String> {
        let mut referenced_exchanges: BTreeMap<ExchangeName, BTreeSet<String>> = BTreeMap::new();
        let mut add_reference = |name: ExchangeName, messages: String| {
            if !name.is_predeclared() && !self.kept.exchanges.contains_key(&name) {
                referenced_exchanges.entry(name).or_default().insert(messages);
            }
        };
        for (name, queue) in &self.kept.queues {
            if let Some(to) = dead_lettering(&queue.arguments, "x-") {
                add_reference(to.exchange, format!("the dead-lettered messages from `{name}`"));
            }
        }
        for (name, tiered) in &self.recognized.tiered {
            if let Some(end) = &tiered.end {
                add_reference(end.exchange.clone(), format!("the dead-lettered messages from `{name}`"));
            }
        }
        for (name, exchange) in &self.kept.exchanges {
            if let Some(alternate) = exchange.alternate_exchange() {
                add_reference(alternate.into(), format!("the messages that `{name}` cannot route"));
            }
        }
        for (name, policy) in &self.kept.policies {
            let alternate = policy.definition.get("alternate-exchange").and_then(ArgumentValue::as_text);
            let dead_letter = dead_lettering(&policy.definition, "").map(|it| it.exchange);
            for exchange in dead_letter.into_iter().chain(alternate.map(ExchangeName::from)) {
                add_reference(exchange, format!("the messages that policy `{name}` sends there"));
            }
        }
        for binding in &self.kept.bindings {
            add_reference(binding.source.clone(), String::new());
            match &binding.destination {
                Destination::Exchange(name) if !self.is_generated(&ObjectId::Binding(binding.clone())) => {
                    add_reference(name.clone(), String::new());
                }
                Destination::Exchange(_) | Destination::Queue(_) => {}
            }
        }
        for (_, exchange) in topic_permissions(self.kept) {
            add_reference(exchange, String::new());
        }
        // The exchange of the first tier is only a placeholder. The broker ignores a missing alternate exchange.
        referenced_exchanges.retain(|name, _| !self.is_first_tier_exchange(name));
        let summarize = |messages: BTreeSet<String>| {
            let mut messages = messages.into_iter().filter(|it| !it.is_empty());
            let first = messages.next().unwrap_or_else(|| "the messages that are published to it".to_owned());
            match messages.count() as u64 {
                0 => first,
                others => format!("{first}, and messages from {}", count(others, "other source")),
            }
        };
        referenced_exchanges.into_iter().map(|(name, messages)| (name, summarize(messages))).collect()
    }

    fn is_first_tier_exchange(&self, name: &ExchangeName) -> bool {
        let queue = crate::model::naming::queue_of_first_exchange(name);
        queue.is_some_and(|queue| self.recognized.tiered.contains_key(&queue))
    }
}

/// Sorts objects by name, comparing numbers in the names by value.
fn in_natural_order<K, V>(objects: impl IntoIterator<Item = (K, V)>, name: impl Fn(&K) -> &str) -> Vec<(K, V)> {
    let mut objects: Vec<(K, V)> = objects.into_iter().collect();
    objects.sort_by(|(a, _), (b, _)| natural::compare(name(a), name(b)));
    objects
}

/// Sorts bindings by source, destination and routing key, comparing numbers by value.
fn in_natural_binding_order<'b>(bindings: impl Iterator<Item = &'b Binding>) -> Vec<&'b Binding> {
    let mut bindings: Vec<&Binding> = bindings.collect();
    bindings.sort_by(|a, b| {
        let by_source = natural::compare(a.source.as_str(), b.source.as_str());
        let by_destination = || natural::compare(a.destination.name(), b.destination.name());
        let by_key = || natural::compare(&a.routing_key, &b.routing_key);
        by_source.then_with(by_destination).then_with(by_key)
    });
    bindings
}

/// Returns the exported objects that refer to an exchange.
pub(super) fn references_to(kept: &Topology, exchange: &ExchangeName) -> Vec<ObjectId> {
    let sends = |target: Option<DeadLettering>| target.is_some_and(|it| it.exchange == *exchange);
    let is_alternate = |alternate: Option<&str>| alternate == Some(exchange.as_str());
    let queues = kept.queues.iter().filter(|(_, it)| sends(dead_lettering(&it.arguments, "x-")));
    let exchanges = kept.exchanges.iter().filter(|(_, it)| is_alternate(it.alternate_exchange()));
    let policies = kept.policies.iter().filter(|(_, it)| {
        let alternate = it.definition.get("alternate-exchange").and_then(ArgumentValue::as_text);
        sends(dead_lettering(&it.definition, "")) || is_alternate(alternate)
    });
    let bindings = kept.bindings.iter().filter(|it| it.source == *exchange);
    let permissions = topic_permissions(kept).filter(|(_, name)| name == exchange);
    let references = queues.map(|(name, _)| ObjectId::Queue(name.clone()));
    let references = references.chain(exchanges.map(|(name, _)| ObjectId::Exchange(name.clone())));
    let references = references.chain(policies.map(|(name, _)| ObjectId::Policy(name.clone())));
    let references = references.chain(permissions.map(|(id, _)| ObjectId::Record(id.clone())));
    references.chain(bindings.map(|it| ObjectId::Binding(it.clone()))).collect()
}

/// Returns the exported topic permissions, each with its exchange.
fn topic_permissions(kept: &Topology) -> impl Iterator<Item = (&RecordId, ExchangeName)> {
    let of_kind = kept.records.keys().filter(|id| id.kind == RecordKind::TopicPermission);
    of_kind.filter_map(|id| Some((id, ExchangeName::new(id.key.get(1)?.as_str()))))
}
