//! Expands a spec to its topology, and records why each object exists.
//!
//! Dead-letter queues become an exchange, a queue and a binding; `deadLetter` becomes arguments or a policy; retries
//! become exchanges, tier queues and bindings, or arguments. Of the broker only its [`BrokerProfile`] is known here: which of its
//! policies a generated one displaces is the planner's affair.

mod case;
mod dead_letter;
mod delayed;
mod holds;
mod ladder;
mod objects;
mod origin;
mod redeliver;
mod republish;
mod retry;
#[cfg(test)]
mod tests;
mod tiers;

pub use case::End;
pub use delayed::Delayed;
pub use ladder::Ladder;
pub use objects::Objects;
pub use origin::{CreatedFor, Origin};
pub use redeliver::Redeliver;
pub use republish::Republish;
pub use retry::Retry;
pub use tiers::Tiers;

use crate::model::{
    ArgumentValue, Arguments, Exchange, ExchangeName, Glob, ObjectId, Places, Policy, PolicyName, Queue, QueueName,
    Scope, Topology, Vhost,
};
use crate::rabbitmq::BrokerProfile;
use crate::spec::{Diagnostic, Diagnostics, Location, QueueSpec, Setting, Sourced, Spec};
use std::collections::BTreeMap;

/// The expansion of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// Everything that the vhost should hold.
    pub topology: Topology,
    /// The names that the spec manages, and external objects.
    pub scope: Scope,
    /// Why each object of the topology exists.
    pub origins: BTreeMap<ObjectId, Origin>,
    /// How the queues retry that do.
    pub retries: BTreeMap<QueueName, Retry>,
}

/// Expands a spec for a broker of that kind: a few objects depend on its version.
///
/// # Errors
/// Generated names that are too long, taken, to be removed or ignored; patterns that cannot be evaluated here although a
/// policy has to be merged; retries that the queue or the broker cannot carry. What a newer broker refuses, an older one
/// does, too: no error here goes away by an older version.
pub fn expand(spec: &Spec, profile: &BrokerProfile) -> Result<Expansion, Diagnostics> {
    let (expansion, diagnostics) = expand_all(spec, profile);
    diagnostics.or_value(expansion)
}

/// The same as far as it can be expanded, and everything that is in the way.
pub fn expand_all(spec: &Spec, profile: &BrokerProfile) -> (Expansion, Diagnostics) {
    let vhost = Vhost {
        description: spec.description.as_ref().map(|it| it.value.clone()),
        tags: Vec::new(),
        default_queue_type: spec.default_queue_type.as_ref().map(|it| it.value.as_str().to_owned()),
    };
    let mut expander = Expander {
        spec,
        profile,
        retries: BTreeMap::new(),
        topology: Topology { settings: Some(vhost), ..Topology::missing(spec.vhost.value.clone()) },
        scope: scope(spec),
        origins: BTreeMap::new(),
        places: BTreeMap::new(),
        diagnostics: Diagnostics::new(),
    };
    expander.note(ObjectId::Vhost, spec.vhost.at, CreatedFor::Declared);
    expander.policies();
    expander.records();
    expander.decide_retries();
    expander.exchanges();
    expander.queues();
    for (binding, written) in &spec.bindings {
        expander.note(ObjectId::Binding(binding.clone()), written.at, CreatedFor::Declared);
        expander.topology.bindings.insert(binding.clone());
    }
    expander.dead_letter_queues();
    expander.make_retries();
    expander.wiring_policies();
    let Expander { topology, scope, origins, retries, diagnostics, .. } = expander;
    let retries = retries.into_iter().map(|(name, (_, retry))| (name, retry)).collect();
    (Expansion { topology, scope, origins, retries }, diagnostics)
}

fn scope(spec: &Spec) -> Scope {
    let globs = |globs: &[Sourced<Glob>]| globs.iter().map(|glob| glob.value.clone()).collect();
    Scope {
        owns: globs(&spec.owns),
        protect: globs(&spec.protect),
        ignore: globs(&spec.ignore),
        sections: spec.sections.clone(),
        removed: spec.removed.iter().map(|removed| removed.value.clone()).collect(),
        ..Scope::default()
    }
}

/// The topology as far as it is made.
struct Expander<'a> {
    spec: &'a Spec,
    profile: &'a BrokerProfile,
    /// How the queues retry that do, and where that is said.
    retries: BTreeMap<QueueName, (Location, Retry)>,
    topology: Topology,
    scope: Scope,
    origins: BTreeMap<ObjectId, Origin>,
    /// The places of what is there, for errors.
    places: BTreeMap<ObjectId, Location>,
    diagnostics: Diagnostics,
}

impl Expander<'_> {
    fn note(&mut self, id: ObjectId, at: Location, because: CreatedFor) {
        self.origins.insert(id.clone(), Origin::new(self.spec, at, because));
        self.places.insert(id, at);
    }

    fn note_declared(&mut self, id: ObjectId, at: Location, places: &Places) {
        let origin = Origin { places: places.clone(), ..Origin::new(self.spec, at, CreatedFor::Declared) };
        self.origins.insert(id.clone(), origin);
        self.places.insert(id, at);
    }

    /// Whether a generated object can have its name; reports the reason otherwise.
    fn can_generate(&mut self, id: &ObjectId, name: &str, at: Location) -> bool {
        let generated = format!("{} `{name}`, which topo generates here,", id.kind());
        let problem = if name.len() > crate::model::names::LONGEST_NAME {
            Some((format!("{generated} has a name of {} bytes, the maximum is 255", name.len()), None))
        } else if let Some(first) = self.places.get(id) {
            Some((format!("{generated} is also declared"), Some((*first, "declared here"))))
        } else if let Some(removed) = self.spec.removed.iter().find(|removed| removed.value == *id) {
            Some((format!("{generated} is also listed under `removed`"), Some((removed.at, "removed here"))))
        } else {
            let glob = self.spec.ignore.iter().find(|glob| glob.value.matches(name));
            glob.map(|glob| (format!("{generated} is matched by `ignore`"), Some((glob.at, "ignored here"))))
        };
        let is_fine = problem.is_none();
        if let Some((message, other)) = problem {
            let mut diagnostic = Diagnostic::error("generated-name", message, at);
            if let Some((other, label)) = other {
                diagnostic = diagnostic.also(other, label);
            }
            self.diagnostics.push(diagnostic);
        }
        is_fine
    }

    fn exchanges(&mut self) {
        for (name, written) in &self.spec.exchanges {
            let id = ObjectId::Exchange(name.clone());
            if written.is_external {
                self.places.insert(id.clone(), written.at);
                if written.is_optional {
                    self.scope.optional_externals.insert(id.clone());
                }
                self.scope.external.insert(id);
                continue;
            }
            let mut arguments: Arguments =
                written.arguments.iter().map(|(name, it)| (name.clone(), it.value.clone())).collect();
            if let Some(alternate) = &written.alternate_exchange {
                arguments.insert("alternate-exchange".to_owned(), alternate.value.as_str().into());
            }
            let exchange = Exchange {
                kind: written.kind.value.clone(),
                durable: written.durable,
                auto_delete: written.auto_delete,
                internal: written.internal,
                arguments,
            };
            self.scope.on_conflict.extend(written.on_conflict.map(|how| (id.clone(), how)));
            self.note_declared(id, written.at, &written.places);
            self.topology.exchanges.insert(name.clone(), exchange);
        }
    }

    fn policies(&mut self) {
        for (name, written) in &self.spec.policies {
            let policy = Policy {
                pattern: written.pattern.value.clone(),
                apply_to: written.apply_to.value,
                priority: written.priority,
                definition: written.definition.iter().map(|(key, it)| (key.clone(), it.value.clone())).collect(),
            };
            self.note(ObjectId::Policy(name.clone()), written.at, CreatedFor::Declared);
            self.topology.policies.insert(name.clone(), policy);
        }
    }

    fn records(&mut self) {
        for (id, written) in &self.spec.records {
            self.note(ObjectId::Record(id.clone()), written.at, CreatedFor::Declared);
            self.topology.records.insert(id.clone(), written.record.clone());
        }
    }

    fn queues(&mut self) {
        let dead_letter_queues = self.spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
        for (name, written) in self.spec.queues.iter().chain(dead_letter_queues) {
            let id = ObjectId::Queue(name.clone());
            if written.is_external {
                self.places.insert(id.clone(), written.at);
                self.scope.external.insert(id);
                continue;
            }
            let mut queue = self.queue(name, written);
            if self.spec.dead_letter_queues.contains_key(name) {
                self.keep_dead_letters(name, &mut queue);
            }
            self.scope.on_conflict.extend(written.on_conflict.as_ref().map(|how| (id.clone(), how.value)));
            self.note_declared(id, written.at, &written.places);
            self.topology.queues.insert(name.clone(), queue);
        }
    }

    fn queue(&self, name: &QueueName, written: &QueueSpec) -> Queue {
        let setting = |setting: &Option<Setting<bool>>, default| setting.as_ref().map_or(default, |it| it.value);
        let mut arguments: Arguments =
            written.arguments.iter().map(|(name, it)| (name.clone(), it.value.clone())).collect();
        if let Some(queue_type) = &written.queue_type {
            // Always set, because a changed default of the vhost would make every redeclare a conflict.
            arguments.insert("x-queue-type".to_owned(), queue_type.value.as_str().into());
        }
        arguments.extend(self.dead_letter_arguments(name, written));
        if let Some((_, retry)) = self.retries.get(name) {
            arguments.extend(retry.arguments());
        }
        Queue {
            durable: setting(&written.durable, true),
            auto_delete: setting(&written.auto_delete, false),
            exclusive: false,
            arguments,
        }
    }

    fn add_generated_exchange(&mut self, name: ExchangeName, exchange: Exchange, at: Location, because: CreatedFor) {
        let id = ObjectId::Exchange(name.clone());
        if self.can_generate(&id, name.as_str(), at) {
            self.note(id, at, because);
            self.topology.exchanges.insert(name, exchange);
        }
    }

    fn add_generated_policy(&mut self, name: PolicyName, policy: Policy, at: Location, queue: &QueueName) {
        let id = ObjectId::Policy(name.clone());
        if self.can_generate(&id, name.as_str(), at) {
            self.note(id, at, CreatedFor::DeadLetterPolicy(queue.clone()));
            self.topology.policies.insert(name, policy);
        }
    }
}

fn text(text: &str) -> ArgumentValue {
    ArgumentValue::Text(text.to_owned())
}
