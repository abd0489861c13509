//! Verifies that replacement bindings equal the originals, including AMQP types, before the originals are deleted.

use super::state::Run;
use super::step_failure::StepFailure;
use crate::broker::BrokerError;
use crate::broker::snapshot::PropertiesKeys;
use crate::broker::transport::{AmqpTransport, Typing};
use crate::model::{Binding, ObjectId};
use crate::plan::{Action, NextAction, Stage};
use std::collections::BTreeSet;

/// Returns true if the action deletes this binding by this key. Several bindings on the broker can have equal JSON, but
/// different keys.
fn is_unbind_of(action: &Action, deleted: &Binding, key: &String) -> bool {
    matches!(action, Action::Unbind { binding, properties_key } if binding == deleted && properties_key == key)
}

impl Run<'_> {
    /// Replaces the keys in the unbinds of a stage with the broker's current keys. topo cannot predict the key of a
    /// binding with arguments that was added since the last read. topo does not read the whole state again, because
    /// this would restart moves, and an aborted shovel duplicates its messages in transit.
    pub(super) async fn refresh_keys(
        &self,
        todo: &mut Vec<NextAction>,
        from: usize,
        stage: Stage,
    ) -> Result<(), BrokerError> {
        let keys = self.keys().await?;
        let mut known: BTreeSet<Binding> = BTreeSet::new();
        for one in todo.split_off(from) {
            match &one.action {
                Action::Unbind { binding, .. } if one.stage == stage && !binding.arguments.is_empty() => {
                    if known.insert(binding.clone()) {
                        let unbind = |properties_key: &String| NextAction {
                            stage,
                            action: Action::Unbind { binding: binding.clone(), properties_key: properties_key.clone() },
                        };
                        todo.extend(keys.get(binding).into_iter().flatten().map(unbind));
                    }
                }
                Action::PutVhost { .. }
                | Action::DeclareExchange { .. }
                | Action::PutTopicPermission { .. }
                | Action::PutPolicy { .. }
                | Action::DeclareQueue { .. }
                | Action::Bind { .. }
                | Action::Unbind { .. }
                | Action::MoveMessages { .. }
                | Action::DeleteQueue { .. }
                | Action::DeleteExchange { .. }
                | Action::DeletePolicy { .. }
                | Action::PutRecord { .. }
                | Action::DeleteRecord { .. } => todo.push(one),
            }
        }
        Ok(())
    }

    /// Verifies that each binding of a stage has an equal replacement before the binding is deleted. `todo` contains
    /// the remaining actions, and begins with an unbind.
    ///
    /// The arguments of a binding can have types that HTTP cannot represent. A replacement that was created over HTTP
    /// then has a different key, and may not match any message. topo binds such a replacement over AMQP, with the types
    /// that result in the same key. If no types result in the same key, topo fails after it has deleted *every* unequal
    /// replacement, because an unequal replacement would prevent a rollback.
    ///
    /// Returns true if a binding was added or deleted. The keys in `todo` are then outdated.
    pub(super) async fn ensure_equal_replacements(
        &self,
        todo: &[NextAction],
        stage: Stage,
    ) -> Result<bool, StepFailure> {
        let mut keys = self.keys().await?;
        let (mut has_changed, mut missing) = (false, None);
        for one in todo.iter().filter(|one| one.stage == stage) {
            let (Action::Unbind { binding, properties_key }, Some(destination)) =
                (&one.action, self.replacement_destination(stage))
            else {
                continue;
            };
            let replacement = Binding { destination, ..binding.clone() };
            let has_key =
                |keys: &PropertiesKeys| keys.get(&replacement).is_some_and(|keys| keys.contains(properties_key));
            if has_key(&keys) {
                continue;
            }
            let known: Vec<String> = keys.get(&replacement).cloned().unwrap_or_default();
            let mut unequal = known.clone();
            unequal.retain(|key| !todo.iter().any(|one| is_unbind_of(&one.action, binding, key)));
            let is_bound = match self.moving.amqp() {
                Some(transport) => self.bind_with_key(transport, &replacement, properties_key, &known).await?,
                None => false,
            };
            has_changed = true;
            // Deletes the replacements that were created over HTTP. If no replacement is equal, the original remains.
            for key in unequal {
                let unbind = Action::Unbind { binding: replacement.clone(), properties_key: key };
                self.broker.perform(&unbind).await?;
            }
            if !is_bound && missing.is_none() {
                missing = Some(BrokerError::NotRestorable {
                    object: ObjectId::Queue(self.migration.queue.clone()).to_string(),
                    binding: binding.to_string(),
                    reason: "its arguments have AMQP types that the management API cannot represent".to_owned(),
                });
            }
            keys = self.keys().await?;
        }
        missing.map_or(Ok(has_changed), |error| Err(StepFailure::GiveUp(error)))
    }

    /// Binds with one combination of types after another until the key is equal. Returns false if no combination
    /// results in the key. Keeps the bindings with the keys `known`, which may be replacements of other bindings.
    async fn bind_with_key(
        &self,
        transport: &AmqpTransport,
        binding: &Binding,
        key: &String,
        known: &[String],
    ) -> Result<bool, StepFailure> {
        for typing in Typing::all(&binding.arguments) {
            if !transport.bind_as(binding, typing).await? {
                continue;
            }
            for added in self.keys().await?.remove(binding).unwrap_or_default() {
                if added == *key {
                    return Ok(true);
                }
                if !known.contains(&added) {
                    let unbind = Action::Unbind { binding: binding.clone(), properties_key: added };
                    self.broker.perform(&unbind).await?;
                }
            }
        }
        Ok(false)
    }

    /// Returns the keys of all bindings in the vhost.
    async fn keys(&self) -> Result<PropertiesKeys, BrokerError> {
        Ok(self.broker.broker().bindings(self.broker.vhost()).await?.1)
    }
}
