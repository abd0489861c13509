//! Checks that an application's declaration over AMQP has the same result as over HTTP, and the error that topo
//! predicts.

use std::collections::BTreeMap;
use std::fmt;

use super::answer::{Predicted, Reply, sentence_agrees, subject};
use super::queues::{Definition, Live};
use crate::live::differential_report::Wrong;
use crate::support::{Amqp, Vhost};

/// The result of a declaration.
#[derive(Clone, Copy)]
pub(super) enum Heard {
    Taken,
    Refused,
}

/// The number of declarations by result.
#[derive(Default)]
pub(super) struct Count {
    taken: usize,
    refused: usize,
}

/// The declarations of a run, for existing and for new queues.
#[derive(Default)]
pub(super) struct OverAmqp {
    pub(super) again: Count,
    pub(super) fresh: Count,
}

impl Count {
    pub(super) fn add(&mut self, received: Heard) {
        match received {
            Heard::Taken => self.taken += 1,
            Heard::Refused => self.refused += 1,
        }
    }
}

impl OverAmqp {
    pub(super) fn extend(&mut self, other: Self) {
        for (count, more) in [(&mut self.again, other.again), (&mut self.fresh, other.fresh)] {
            count.taken += more.taken;
            count.refused += more.refused;
        }
    }

    /// Returns the smallest of the four numbers.
    pub(super) fn least(&self) -> usize {
        let all = [&self.again, &self.fresh].map(|count| count.taken.min(count.refused));
        all[0].min(all[1])
    }
}

impl fmt::Display for OverAmqp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [again, fresh] =
            [&self.again, &self.fresh].map(|count| format!("{} taken, {} refused", count.taken, count.refused));
        write!(f, "existing queues {again}; new queues {fresh}")
    }
}

fn wrong<T>(text: String) -> Result<T, Wrong> {
    Err(Wrong::new("AMQP", text))
}

/// Declares an existing queue again.
pub(super) fn again(
    amqp: &Amqp,
    name: &str,
    (live, desired): (&Live, &Definition),
    predicted: &Predicted,
    over_http: &Reply,
) -> Result<Heard, Wrong> {
    let declared = amqp.declare_queue_as(name, desired.options(), &desired.table(&BTreeMap::new()));
    match (declared, over_http) {
        (Ok(()), Reply::Accepted(_)) => Ok(Heard::Taken),
        (Err(text), Reply::Refused { .. }) => sentence_agrees(live, predicted, &text).map(|()| Heard::Refused),
        (Ok(()), Reply::Refused { text, .. }) => wrong(format!("AMQP accepts what HTTP refuses: {text}")),
        (Err(text), Reply::Accepted(_)) => wrong(format!("AMQP refuses what HTTP accepts: {text}")),
    }
}

/// Declares a new queue on a separate connection, which some refusals close.
pub(super) fn fresh(vhost: &Vhost<'_>, name: &str, desired: &Definition, over_http: &Reply) -> Result<Heard, Wrong> {
    let declared = vhost.amqp().declare_queue_as(name, desired.options(), &desired.table(&BTreeMap::new()));
    match (declared, over_http) {
        (Ok(()), Reply::Accepted(_)) => Ok(Heard::Taken),
        // For crashes and closed connections, the error text differs.
        (Err(text), Reply::Refused { subject: named, text: reply })
            if text.starts_with("PRECONDITION_FAILED") && subject(&text) != *named =>
        {
            wrong(format!("new queue: AMQP says {text}, HTTP {reply}"))
        }
        (Err(_), Reply::Refused { .. }) => Ok(Heard::Refused),
        (Ok(()), Reply::Refused { text, .. }) => wrong(format!("new queue: AMQP accepts what HTTP refuses: {text}")),
        (Err(text), Reply::Accepted(_)) => wrong(format!("new queue: AMQP refuses what HTTP accepts: {text}")),
    }
}
