//! Expands a spec into the desired topology, and records why each object exists.
//!
//! A dead-letter queue becomes an exchange, a queue and a binding. `deadLetter` becomes queue arguments or a policy.
//! Retries become exchanges, tier queues and bindings, or queue arguments.
//!
//! The expansion depends only on the spec and the [`BrokerProfile`]. `plan` handles policies on the broker that a
//! generated policy displaces.

mod case;
mod dead_letter;
mod ladder;
mod origin;
mod retry;
mod strategies;
#[cfg(test)]
mod tests;
mod tiers;

pub use case::FinalTarget;
pub use ladder::Ladder;
pub use origin::{CreatedFor, Origin};
pub use retry::Retry;
pub use strategies::Delayed;
pub use strategies::Redeliver;
pub use strategies::Republish;
pub use tiers::Objects;
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
    /// The desired topology of the vhost.
    pub topology: Topology,
    /// The objects that the spec manages, protects and ignores.
    pub scope: Scope,
    /// The origin of each object in the topology.
    pub origins: BTreeMap<ObjectId, Origin>,
    /// The retries of each queue that has retries.
    pub retries: BTreeMap<QueueName, Retry>,
}

/// Expands a spec for a broker. A few generated objects depend on the broker version.
///
/// # Errors
/// Returns a diagnostic for each of these problems:
/// - A generated name is too long, or the spec also declares, removes or ignores the name.
/// - Two dead-letter queues share an exchange that cannot serve both of them.
/// - topo must merge a policy into a generated policy, but cannot evaluate the pattern of the policy.
/// - The queue type, a setting of the queue or the broker version does not support the retries.
///
/// If expansion fails for one broker version, it also fails for all earlier versions.
pub fn expand(spec: &Spec, profile: &BrokerProfile) -> Result<Expansion, Diagnostics> {
    let (expansion, diagnostics) = expand_all(spec, profile);
    diagnostics.or_value(expansion)
}

/// Expands a spec like [`expand`], but returns the expansion even if there are errors. In that case, the expansion is
/// incomplete.
pub fn expand_all(spec: &Spec, profile: &BrokerProfile) -> (Expansion, Diagnostics) {
    let vhost = Vhost {
        description: spec.description.as_ref().map(|it| it.value.clone()),
        tags: spec.tags.clone(),
        default_queue_type: spec.default_queue_type.as_ref().map(|it| it.value.as_str().to_owned()),
    };
    let mut expander = Expander {
        spec,
        profile,
        retries: BTreeMap::new(),
        topology: Topology { settings: Some(vhost), ..Topology::missing(spec.vhost.value.clone()) },
        scope: scope(spec),
        origins: BTreeMap::new(),
        positions: BTreeMap::new(),
        diagnostics: Diagnostics::new(),
    };
    expander.record_origin(ObjectId::Vhost, spec.vhost.at, CreatedFor::Declared);
    expander.policies();
    expander.records();
    expander.decide_retries();
    expander.exchanges();
    expander.queues();
    for (binding, declaration) in &spec.bindings {
        expander.record_origin(ObjectId::Binding(binding.clone()), declaration.at, CreatedFor::Declared);
        expander.topology.bindings.insert(binding.clone());
    }
    expander.dead_letter_queues();
    expander.create_retries();
    expander.wiring_policies();
    let Expander { topology, scope, origins, retries, diagnostics, .. } = expander;
    let retries = retries.into_iter().map(|(name, (_, retry))| (name, retry)).collect();
    (Expansion { topology, scope, origins, retries }, diagnostics)
}

fn scope(spec: &Spec) -> Scope {
    let globs = |globs: &[Sourced<Glob>]| globs.iter().map(|glob| glob.value.clone()).collect();
    Scope {
        cluster_name: spec.cluster_name.as_ref().map(|name| name.value.clone()),
        requires: spec.requires.clone(),
        owns: globs(&spec.owns),
        protect: globs(&spec.protect),
        ignore: globs(&spec.ignore),
        users: spec.users.clone(),
        sections: spec.sections.clone(),
        super_streams: spec.super_streams.clone(),
        removed: spec.removed.iter().map(|removed| removed.value.clone()).collect(),
        ..Scope::default()
    }
}

/// The state of an expansion.
struct Expander<'a> {
    spec: &'a Spec,
    profile: &'a BrokerProfile,
    /// The retries of each queue that has retries, with their positions.
    retries: BTreeMap<QueueName, (Location, Retry)>,
    topology: Topology,
    scope: Scope,
    origins: BTreeMap<ObjectId, Origin>,
    /// The spec positions of external objects and of the objects added so far, for error messages.
    positions: BTreeMap<ObjectId, Location>,
    diagnostics: Diagnostics,
}

impl Expander<'_> {
    /// Records the origin of an object.
    fn record_origin(&mut self, id: ObjectId, at: Location, because: CreatedFor) {
        self.origins.insert(id.clone(), Origin::new(self.spec, at, because));
        self.positions.insert(id, at);
    }

    /// Records the origin of a declared object, with the positions of its arguments.
    fn record_declaration(&mut self, id: ObjectId, at: Location, places: &Places) {
        let origin = Origin { places: places.clone(), ..Origin::new(self.spec, at, CreatedFor::Declared) };
        self.origins.insert(id.clone(), origin);
        self.positions.insert(id, at);
    }

    /// Returns true if topo can generate an object with this name. Otherwise, reports an error.
    fn can_generate(&mut self, id: &ObjectId, name: &str, at: Location) -> bool {
        let generated = format!("{} `{name}`, which topo generates here,", id.kind());
        let problem = if name.len() > crate::model::names::MAX_NAME_BYTES {
            Some((format!("{generated} has a name of {} bytes; the maximum is 255", name.len()), None))
        } else if let Some(first) = self.positions.get(id) {
            Some((format!("{generated} is also declared"), Some((*first, "declared here"))))
        } else if let Some(removed) = self.spec.removed.iter().find(|removed| removed.value == *id) {
            Some((format!("{generated} is also listed under `removed`"), Some((removed.at, "removed here"))))
        } else {
            let glob = self.spec.ignore.iter().find(|glob| glob.value.matches(name));
            glob.map(|glob| (format!("{generated} is matched by `ignore`"), Some((glob.at, "ignored here"))))
        };
        let is_valid = problem.is_none();
        if let Some((message, other)) = problem {
            let mut diagnostic = Diagnostic::error("generated-name", message, at);
            if let Some((other, label)) = other {
                diagnostic = diagnostic.also(other, label);
            }
            self.diagnostics.push(diagnostic);
        }
        is_valid
    }

    fn exchanges(&mut self) {
        for (name, declaration) in &self.spec.exchanges {
            let id = ObjectId::Exchange(name.clone());
            if declaration.is_external {
                self.positions.insert(id.clone(), declaration.at);
                if declaration.is_optional {
                    self.scope.optional_externals.insert(id.clone());
                }
                self.scope.external.insert(id);
                continue;
            }
            let mut arguments: Arguments =
                declaration.arguments.iter().map(|(name, it)| (name.clone(), it.value.clone())).collect();
            if let Some(alternate) = &declaration.alternate_exchange {
                arguments.insert("alternate-exchange".to_owned(), alternate.value.as_str().into());
            }
            let exchange = Exchange {
                kind: declaration.kind.value.clone(),
                durable: declaration.durable,
                auto_delete: declaration.auto_delete,
                internal: declaration.internal,
                arguments,
            };
            self.scope.on_conflict.extend(declaration.on_conflict.map(|how| (id.clone(), how)));
            self.record_declaration(id, declaration.at, &declaration.places);
            self.topology.exchanges.insert(name.clone(), exchange);
        }
    }

    fn policies(&mut self) {
        for (name, declaration) in &self.spec.policies {
            let policy = Policy {
                pattern: declaration.pattern.value.clone(),
                apply_to: declaration.apply_to.value,
                priority: declaration.priority,
                definition: declaration.definition.iter().map(|(key, it)| (key.clone(), it.value.clone())).collect(),
            };
            self.record_origin(ObjectId::Policy(name.clone()), declaration.at, CreatedFor::Declared);
            self.topology.policies.insert(name.clone(), policy);
        }
    }

    fn records(&mut self) {
        for (id, declaration) in &self.spec.records {
            self.record_origin(ObjectId::Record(id.clone()), declaration.at, CreatedFor::Declared);
            self.topology.records.insert(id.clone(), declaration.record.clone());
        }
    }

    fn queues(&mut self) {
        let dead_letter_queues = self.spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
        for (name, declaration) in self.spec.queues.iter().chain(dead_letter_queues) {
            let id = ObjectId::Queue(name.clone());
            if declaration.is_external {
                self.positions.insert(id.clone(), declaration.at);
                self.scope.external.insert(id);
                continue;
            }
            let mut queue = self.queue(name, declaration);
            if self.spec.dead_letter_queues.contains_key(name) {
                self.disable_delivery_limit(name, &mut queue);
            }
            self.scope.on_conflict.extend(declaration.on_conflict.as_ref().map(|how| (id.clone(), how.value)));
            self.record_declaration(id, declaration.at, &declaration.places);
            self.topology.queues.insert(name.clone(), queue);
        }
    }

    fn queue(&self, name: &QueueName, declaration: &QueueSpec) -> Queue {
        let setting = |setting: &Option<Setting<bool>>, default| setting.as_ref().map_or(default, |it| it.value);
        let mut arguments: Arguments =
            declaration.arguments.iter().map(|(name, it)| (name.clone(), it.value.clone())).collect();
        if let Some(queue_type) = &declaration.queue_type {
            // The argument is always set. Otherwise, a change to the vhost's default queue type would turn every
            // redeclaration of the queue into a conflict.
            arguments.insert("x-queue-type".to_owned(), queue_type.value.as_str().into());
        }
        arguments.extend(self.dead_letter_arguments(name, declaration));
        if let Some((_, retry)) = self.retries.get(name) {
            arguments.extend(retry.arguments());
        }
        Queue {
            durable: setting(&declaration.durable, true),
            auto_delete: setting(&declaration.auto_delete, false),
            exclusive: false,
            arguments,
        }
    }

    fn add_generated_exchange(&mut self, name: ExchangeName, exchange: Exchange, at: Location, because: CreatedFor) {
        let id = ObjectId::Exchange(name.clone());
        if self.can_generate(&id, name.as_str(), at) {
            self.record_origin(id, at, because);
            self.topology.exchanges.insert(name, exchange);
        }
    }

    fn add_generated_policy(&mut self, name: PolicyName, policy: Policy, at: Location, queue: &QueueName) {
        let id = ObjectId::Policy(name.clone());
        if self.can_generate(&id, name.as_str(), at) {
            self.record_origin(id, at, CreatedFor::DeadLetterPolicy(queue.clone()));
            self.topology.policies.insert(name, policy);
        }
    }
}

fn text(text: &str) -> ArgumentValue {
    ArgumentValue::Text(text.to_owned())
}
