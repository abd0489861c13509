//! Carries out one action: sends its request, and says whether there was anything left to do.

use super::connection::Broker;
use super::error::BrokerError;
use super::request::request;
use crate::model::{Binding, VhostName};
use crate::plan::Action;

/// What came of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Performed {
    /// The broker took it. For a declare that proves little: the broker answers 204 also where it ignored a difference.
    Done,
    /// There was nothing to delete.
    AlreadyGone,
}

impl Broker {
    /// Carries out an action.
    ///
    /// Every request can be repeated without harm, so what may go away is tried again. Deleting what is gone is success;
    /// a queue whose node is down is not gone ([`BrokerError::HomeNodeDown`]). The guard of a delete is kept; when it
    /// does not hold, nothing is deleted and the error is [`BrokerError::NotEmpty`], [`BrokerError::MoreThanAllowed`] or
    /// [`BrokerError::EmptinessUnknown`].
    pub async fn perform(&self, vhost: &VhostName, action: &Action) -> Result<Performed, BrokerError> {
        let sent = request(vhost, action);
        match action {
            Action::PutVhost { .. }
            | Action::DeclareExchange { .. }
            | Action::PutPolicy { .. }
            | Action::DeclareQueue { .. } => self.send(&sent).await.map(|_| Performed::Done),
            Action::Bind { binding } if breaks_the_list(binding) => {
                Err(BrokerError::Unlistable { binding: Box::new(binding.clone()) })
            }
            Action::Bind { .. } => self.send(&sent).await.map(|_| Performed::Done),
            Action::DeleteExchange { .. } | Action::DeletePolicy { .. } => gone_is_done(self.send(&sent).await),
            Action::Unbind { binding, properties_key } => {
                let performed = gone_is_done(self.send(&sent).await)?;
                // 404 is also the answer, for ever, for the routing keys `null` and `undefined`, which the handler takes
                // for atoms (`rabbit_mgmt_wm_binding`, all versions). So a binding is gone when it is listed no more.
                if performed == Performed::AlreadyGone {
                    let (_, keys) = self.bindings(vhost).await?;
                    if keys.get(binding).is_some_and(|keys| keys.contains(properties_key)) {
                        return Err(BrokerError::Undeletable { binding: Box::new(binding.clone()) });
                    }
                }
                Ok(performed)
            }
            Action::DeleteQueue { name, guard } => self.delete_queue(vhost, name, *guard, &sent).await,
        }
    }
}

/// Whether `GET /api/bindings/VHOST` fails for as long as this binding is there, and with it every plan.
///
/// `rabbit_mgmt_format:pack_binding_props` appends the hash of the arguments with `++` to what `re:replace` made of the
/// routing key, and that is an improper list when it replaced a `~` (seen live on 3.10.8: the POST answers 500, too, and
/// the binding is there; later sources have the same lines). A plan should refuse it before; this is the last line.
pub fn breaks_the_list(binding: &Binding) -> bool {
    // Nothing is behind a `~` at the end, and the list is a proper one.
    !binding.arguments.is_empty() && binding.routing_key.trim_end_matches('~').contains('~')
}

/// A delete of what is not there.
pub(super) fn gone_is_done<T>(result: Result<T, BrokerError>) -> Result<Performed, BrokerError> {
    match result {
        Ok(_) => Ok(Performed::Done),
        Err(BrokerError::NotFound { .. }) => Ok(Performed::AlreadyGone),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Arguments, Destination};

    #[test]
    fn a_tilde_beside_arguments() {
        let some: Arguments = [("n".to_owned(), 1.into())].into();
        for (key, arguments, expected) in [
            ("a~b", &some, true),
            ("~b", &some, true),
            ("~", &some, false),
            ("ab", &some, false),
            ("a~b", &Arguments::new(), false),
        ] {
            let binding = Binding {
                source: "e".into(),
                destination: Destination::Queue("q".into()),
                routing_key: key.to_owned(),
                arguments: arguments.clone(),
            };
            assert_eq!(breaks_the_list(&binding), expected, "{key}");
        }
    }
}
