//! Lets a shovel take over where AMQP cannot carry a message.

use super::Moving;
use crate::apply::migrate::StepFailure;
use crate::apply::migrate::fault::setback;
use crate::broker::transport::{Fault, Transport};
use crate::model::QueueName;

impl Moving<'_> {
    /// Converts a fault into a setback, unless a shovel can take over because AMQP cannot carry a message.
    pub(in crate::apply::migrate) async fn refused(
        &mut self,
        from: &QueueName,
        fault: Fault,
    ) -> Result<Fault, StepFailure> {
        let Fault::NotCarried { reason } = &fault else { return setback(from, fault) };
        let advice = match self.means.transport {
            Some(Transport::AmqpOrShovel(_, shovel)) => match shovel.check().await {
                Ok(()) => {
                    self.fallback = Some(reason.clone());
                    return Ok(fault);
                }
                Err(why) => format!("a shovel cannot take over: {why}"),
            },
            Some(Transport::Amqp(_) | Transport::Shovel(_)) | None => "use `--transport shovel`".to_owned(),
        };
        setback(from, Fault::NotCarried { reason: format!("{reason}; {advice}") })
    }

    /// Why a shovel took over from AMQP, if it did.
    pub(in crate::apply::migrate) fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }
}
