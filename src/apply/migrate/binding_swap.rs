//! Ensures that replacement bindings equal the originals, including the AMQP types of their arguments, before the
//! originals are deleted.

use super::state::Run;
use super::step_failure::StepFailure;
use crate::broker::BrokerError;
use crate::broker::snapshot::PropertiesKeys;
use crate::broker::transport::{AmqpTransport, Typing};
use crate::model::{Binding, ObjectId};
use crate::plan::{Action, NextAction, Stage};
use std::collections::BTreeSet;

/// Returns true if the action deletes this binding using this properties key. Several bindings on the broker can have
/// identical JSON but different keys.
fn is_unbind_of(action: &Action, deleted: &Binding, key: &String) -> bool {
    matches!(action, Action::Unbind { binding, properties_key } if binding == deleted && properties_key == key)
}

impl Run<'_> {
    /// Replaces the properties keys in a stage's unbinds, starting at index `from`, with the broker's current keys.
    /// Only bindings with arguments are affected, because topo cannot predict their keys if they were added since the
    /// last read. topo does not reread the whole state, because a reread would restart moves, and an aborted shovel
    /// duplicates its messages in transit.
    pub(super) async fn refresh_keys(
        &self,
        remaining: &mut Vec<NextAction>,
        from: usize,
        stage: Stage,
    ) -> Result<(), BrokerError> {
        let keys = self.keys().await?;
        let mut refreshed: BTreeSet<Binding> = BTreeSet::new();
        for next in remaining.split_off(from) {
            match &next.action {
                Action::Unbind { binding, .. } if next.stage == stage && !binding.arguments.is_empty() => {
                    if refreshed.insert(binding.clone()) {
                        let unbind = |properties_key: &String| NextAction {
                            stage,
                            action: Action::Unbind { binding: binding.clone(), properties_key: properties_key.clone() },
                        };
                        remaining.extend(keys.get(binding).into_iter().flatten().map(unbind));
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
                | Action::DeleteRecord { .. } => remaining.push(next),
            }
        }
        Ok(())
    }

    /// Ensures that each binding that a stage deletes has an equal replacement. `remaining` contains the remaining
    /// actions, and begins with an unbind.
    ///
    /// The arguments of a binding can have types that HTTP cannot represent. In that case, a replacement that was
    /// created over HTTP has a different properties key, and might not match the same messages. topo binds such a
    /// replacement over AMQP, with the types that result in the same key. If no types result in the same key, or if
    /// AMQP is not available, the step fails after topo has deleted *every* unequal replacement. An unequal replacement
    /// would prevent a rollback.
    ///
    /// Returns true if a binding was added or deleted. In that case, the keys in `remaining` are outdated.
    pub(super) async fn ensure_equal_replacements(
        &self,
        remaining: &[NextAction],
        stage: Stage,
    ) -> Result<bool, StepFailure> {
        let mut keys = self.keys().await?;
        let (mut has_changed, mut failure) = (false, None);
        for next in remaining.iter().filter(|next| next.stage == stage) {
            let (Action::Unbind { binding, properties_key }, Some(destination)) =
                (&next.action, self.replacement_destination(stage))
            else {
                continue;
            };
            let replacement = Binding { destination, ..binding.clone() };
            let has_key =
                |keys: &PropertiesKeys| keys.get(&replacement).is_some_and(|keys| keys.contains(properties_key));
            if has_key(&keys) {
                continue;
            }
            let existing: Vec<String> = keys.get(&replacement).cloned().unwrap_or_default();
            let mut unequal = existing.clone();
            unequal.retain(|key| !remaining.iter().any(|next| is_unbind_of(&next.action, binding, key)));
            let is_bound = match self.moving.amqp() {
                Some(transport) => self.bind_with_key(transport, &replacement, properties_key, &existing).await?,
                None => false,
            };
            has_changed = true;
            // Deletes the replacements that were created over HTTP. If no replacement is equal, the original remains.
            for key in unequal {
                let unbind = Action::Unbind { binding: replacement.clone(), properties_key: key };
                self.broker.perform(&unbind).await?;
            }
            if !is_bound && failure.is_none() {
                failure = Some(BrokerError::NotRestorable {
                    object: ObjectId::Queue(self.migration.queue.clone()).to_string(),
                    binding: binding.to_string(),
                    reason: "its arguments have AMQP types that the management API cannot represent".to_owned(),
                });
            }
            keys = self.keys().await?;
        }
        failure.map_or(Ok(has_changed), |error| Err(StepFailure::GiveUp(error)))
    }

    /// Tries each combination of argument types until the binding has the properties key `key`. Returns false if no
    /// combination results in this key. Keeps the bindings with the keys in `existing`, which may be replacements for
    /// other bindings.
    async fn bind_with_key(
        &self,
        transport: &AmqpTransport,
        binding: &Binding,
        key: &String,
        existing: &[String],
    ) -> Result<bool, StepFailure> {
        for typing in Typing::all(&binding.arguments) {
            if !transport.bind_as(binding, typing).await? {
                continue;
            }
            for added in self.keys().await?.remove(binding).unwrap_or_default() {
                if added == *key {
                    return Ok(true);
                }
                if !existing.contains(&added) {
                    let unbind = Action::Unbind { binding: binding.clone(), properties_key: added };
                    self.broker.perform(&unbind).await?;
                }
            }
        }
        Ok(false)
    }

    /// Returns the properties keys of all bindings in the vhost.
    async fn keys(&self) -> Result<PropertiesKeys, BrokerError> {
        Ok(self.broker.broker().bindings(self.broker.vhost()).await?.1)
    }
}
