//! Replaces AMQP by a shovel if AMQP cannot carry a message.

use super::Moving;
use crate::apply::migrate::StepFailure;
use crate::apply::migrate::fault::classify_fault;
use crate::broker::transport::{Fault, Transport};
use crate::model::QueueName;

impl Moving<'_> {
    /// Returns a fault that can end by itself, or selects a shovel if AMQP cannot carry a message. Otherwise returns a
    /// step failure.
    pub(in crate::apply::migrate) async fn handle_fault(
        &mut self,
        from: &QueueName,
        fault: Fault,
    ) -> Result<Fault, StepFailure> {
        let Fault::NotCarried { reason } = &fault else { return classify_fault(from, fault) };
        let advice = match self.resources.transport {
            Some(Transport::AmqpOrShovel(_, shovel)) => match shovel.check().await {
                Ok(()) => {
                    self.fallback = Some(reason.clone());
                    return Ok(fault);
                }
                Err(why) => format!("a shovel cannot take over: {why}"),
            },
            Some(Transport::Amqp(_) | Transport::Shovel(_)) | None => "use `--transport shovel`".to_owned(),
        };
        classify_fault(from, Fault::NotCarried { reason: format!("{reason}; {advice}") })
    }

    /// Returns the reason why a shovel took over from AMQP, if it did.
    pub(in crate::apply::migrate) fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }
}
