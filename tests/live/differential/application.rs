//! The same over AMQP: an application's declare gets the answer that HTTP gives, and the sentence that topo promises.

use std::collections::BTreeMap;
use std::fmt;

use super::answer::{Predicted, Said, sentence_agrees, subject};
use super::queues::{Definition, Live};
use crate::live::differential_report::Wrong;
use crate::support::{Amqp, Vhost};

/// What one declare heard.
#[derive(Clone, Copy)]
pub(super) enum Heard {
    Taken,
    Refused,
}

/// How many declares heard what.
#[derive(Default)]
pub(super) struct Count {
    taken: usize,
    refused: usize,
}

/// The declares of a run, of live queues and of new ones.
#[derive(Default)]
pub(super) struct OverAmqp {
    pub(super) again: Count,
    pub(super) fresh: Count,
}

impl Count {
    pub(super) fn add(&mut self, heard: Heard) {
        match heard {
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

    /// Of the four kinds of answers the one that was heard least.
    pub(super) fn least(&self) -> usize {
        let all = [&self.again, &self.fresh].map(|count| count.taken.min(count.refused));
        all[0].min(all[1])
    }
}

impl fmt::Display for OverAmqp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [again, fresh] =
            [&self.again, &self.fresh].map(|count| format!("{} taken, {} refused", count.taken, count.refused));
        write!(f, "live ones {again}; new ones {fresh}")
    }
}

fn wrong<T>(text: String) -> Result<T, Wrong> {
    Err(Wrong::new("AMQP", text))
}

/// A declare of a live queue.
pub(super) fn again(
    amqp: &Amqp,
    name: &str,
    (live, desired): (&Live, &Definition),
    predicted: &Predicted,
    over_http: &Said,
) -> Result<Heard, Wrong> {
    let declared = amqp.declare_queue_as(name, desired.options(), &desired.table(&BTreeMap::new()));
    match (declared, over_http) {
        (Ok(()), Said::Accepted(_)) => Ok(Heard::Taken),
        (Err(text), Said::Refused { .. }) => sentence_agrees(live, predicted, &text).map(|()| Heard::Refused),
        (Ok(()), Said::Refused { text, .. }) => wrong(format!("AMQP takes what HTTP refuses: {text}")),
        (Err(text), Said::Accepted(_)) => wrong(format!("AMQP refuses what HTTP takes: {text}")),
    }
}

/// A declare of a new queue. It has a connection of its own: some refusals end that, and not only the channel.
pub(super) fn fresh(vhost: &Vhost<'_>, name: &str, desired: &Definition, over_http: &Said) -> Result<Heard, Wrong> {
    let declared = vhost.amqp().declare_queue_as(name, desired.options(), &desired.table(&BTreeMap::new()));
    match (declared, over_http) {
        (Ok(()), Said::Accepted(_)) => Ok(Heard::Taken),
        // What crashes, or closes the connection, is told in other words.
        (Err(text), Said::Refused { subject: named, text: said })
            if text.starts_with("PRECONDITION_FAILED") && subject(&text) != *named =>
        {
            wrong(format!("a new one: AMQP says {text}, HTTP {said}"))
        }
        (Err(_), Said::Refused { .. }) => Ok(Heard::Refused),
        (Ok(()), Said::Refused { text, .. }) => wrong(format!("a new one: AMQP takes what HTTP refuses: {text}")),
        (Err(text), Said::Accepted(_)) => wrong(format!("a new one: AMQP refuses what HTTP takes: {text}")),
    }
}
