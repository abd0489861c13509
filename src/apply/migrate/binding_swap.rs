//! Verifies that replacement bindings equal the originals, including AMQP types, before the originals are deleted.

use super::{Run, StepFailure};
use crate::broker::BrokerError;
use crate::broker::snapshot::PropertiesKeys;
use crate::broker::transport::{AmqpTransport, Typing};
use crate::model::Binding;
use crate::plan::{Action, NextAction, Stage};
use std::collections::BTreeSet;

/// Whether this binding is unbound by that key: the same JSON can be several bindings to the broker.
fn is_unbound(action: &Action, of: &Binding, by: &String) -> bool {
    matches!(action, Action::Unbind { binding, properties_key } if binding == of && properties_key == by)
}

impl Run<'_> {
    /// Gives what is unbound in a stage the broker's keys of now: what was bound since the last look has others than could be
    /// foreseen, where it has arguments. To look at all again instead would begin moves anew, and a shovel that is broken
    /// off doubles what it has under way.
    pub(super) async fn with_keys(
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

    /// Looks whether all that is about to be unbound has its like. `todo` is what is left, and begins with an unbind.
    ///
    /// A binding whose arguments have types that HTTP cannot carry has another key, and may route nothing: it is bound over
    /// AMQP, with the types that give the same key. True if anything was bound or unbound for that: then the keys in `todo`
    /// are no longer those that are live. Where that cannot be, what HTTP made of *each* such binding goes again first: it
    /// has no like at the queue, and nothing could be put back.
    pub(super) async fn turned(&self, todo: &[NextAction], stage: Stage) -> Result<bool, StepFailure> {
        let mut keys = self.keys().await?;
        let (mut has_changed, mut missing) = (false, None);
        for one in todo.iter().filter(|one| one.stage == stage) {
            let (Action::Unbind { binding, properties_key }, Some(destination)) = (&one.action, self.instead(stage))
            else {
                continue;
            };
            let other = Binding { destination, ..binding.clone() };
            let is_same = |keys: &PropertiesKeys| keys.get(&other).is_some_and(|keys| keys.contains(properties_key));
            if is_same(&keys) {
                continue;
            }
            let known: Vec<String> = keys.get(&other).cloned().unwrap_or_default();
            let mut wrong = known.clone();
            wrong.retain(|key| !todo.iter().any(|one| is_unbound(&one.action, binding, key)));
            let found = match self.moving.amqp() {
                Some(transport) => self.bind_alike(transport, &other, properties_key, &known).await?,
                None => false,
            };
            has_changed = true;
            // What HTTP made of it goes again; where none is the same, the one that was there stays.
            for key in wrong {
                let unbind = Action::Unbind { binding: other.clone(), properties_key: key };
                self.broker.perform(&unbind).await?;
            }
            if !found && missing.is_none() {
                missing = Some(BrokerError::NotRestorable {
                    object: self.migration.queue.to_string(),
                    binding: binding.to_string(),
                    reason: "its arguments have AMQP types that the management API cannot carry".to_owned(),
                });
            }
            keys = self.keys().await?;
        }
        missing.map_or(Ok(has_changed), |error| Err(StepFailure::GiveUp(error)))
    }

    /// Tries one type after another. What was known before stays: it may be the like of another one.
    async fn bind_alike(
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
            for made in self.keys().await?.remove(binding).unwrap_or_default() {
                if made == *key {
                    return Ok(true);
                }
                if !known.contains(&made) {
                    let unbind = Action::Unbind { binding: binding.clone(), properties_key: made };
                    self.broker.perform(&unbind).await?;
                }
            }
        }
        Ok(false)
    }

    async fn keys(&self) -> Result<PropertiesKeys, BrokerError> {
        Ok(self.broker.broker().bindings(self.broker.vhost()).await?.1)
    }
}
