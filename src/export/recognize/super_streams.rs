//! Recognizes super streams. A super stream consists of a direct exchange that is marked as a super stream, and its
//! partitions.

use super::patterns::{Partitions, Recognized};
use crate::model::names::{PARTITION_ORDER, SUPER_STREAM};
use crate::model::{ArgumentValue, Arguments, Binding, Destination, Exchange, ExchangeName, ObjectId, QueueName};
use crate::model::{Queue, QueueType, Topology};
use crate::plan::spec_keys::{Parts, is_deletable_routing_key, queue_keys};
use std::collections::{BTreeMap, BTreeSet};

/// Adds each super stream that an entry in `superStreams` reproduces exactly.
pub(super) fn find(recognized: &mut Recognized, kept: &Topology) {
    for name in kept.exchanges.iter().filter(|(_, exchange)| is_marked(exchange)).map(|(name, _)| name) {
        let is_generated = recognized.generated.contains_key(&ObjectId::Exchange(name.clone()));
        let Some((partitions, members)) = partitions(name, kept).filter(|_| !is_generated) else { continue };
        let exchange = ObjectId::Exchange(name.clone());
        let members = members.into_iter().chain([exchange]);
        recognized.generated.extend(members.map(|id| (id, partitions.stream.clone())));
        recognized.super_streams.insert(name.clone(), partitions);
    }
}

/// Returns true if the exchange has exactly the properties of a super stream's exchange.
fn is_marked(exchange: &Exchange) -> bool {
    let is_direct = exchange.kind == "direct" && exchange.durable && !exchange.auto_delete && !exchange.internal;
    is_direct && exchange.arguments == Arguments::from([(SUPER_STREAM.to_owned(), ArgumentValue::Boolean(true))])
}

/// Returns the partitions of an exchange, with their streams and bindings. Returns `None` if an entry in `superStreams`
/// cannot reproduce these objects.
fn partitions(name: &ExchangeName, kept: &Topology) -> Option<(Partitions, Vec<ObjectId>)> {
    let mut by_order: BTreeMap<i64, &Binding> = BTreeMap::new();
    for binding in kept.bindings.iter().filter(|binding| binding.source == *name) {
        let Some(order) = binding.arguments.get(PARTITION_ORDER) else { continue };
        let is_only = binding.arguments.len() == 1;
        if !is_only || by_order.insert(order.as_integer()?, binding).is_some() {
            return None;
        }
    }
    let is_complete = by_order.keys().copied().eq((0..).take(by_order.len()));
    let mut found: Option<(QueueName, &Queue)> = None;
    let (mut keys, mut members) = (Vec::new(), Vec::new());
    for binding in by_order.into_values() {
        let Destination::Queue(stream) = &binding.destination else { return None };
        let queue = kept.queues.get(stream).filter(|queue| is_plain_stream(queue))?;
        let has_name = stream.as_str() == format!("{}-{}", name.as_str(), binding.routing_key);
        let is_equal = found.as_ref().is_none_or(|(_, first)| *first == queue);
        if !has_name || !is_equal || !is_deletable_routing_key(Some(&binding.routing_key)) {
            return None;
        }
        found.get_or_insert((stream.clone(), queue));
        keys.push(binding.routing_key.clone());
        members.extend([ObjectId::Queue(stream.clone()), ObjectId::Binding(binding.clone())]);
    }
    let is_unique = keys.iter().collect::<BTreeSet<_>>().len() == keys.len();
    let (stream, _) = found.filter(|_| is_complete && is_unique)?;
    let is_numbered = keys.iter().enumerate().all(|(index, key)| *key == index.to_string());
    let partitions = Partitions { count: keys.len(), keys: (!is_numbered).then_some(keys), stream };
    Some((partitions, members))
}

/// Returns true for a durable stream if the keys of a super stream can set all its arguments.
fn is_plain_stream(queue: &Queue) -> bool {
    let is_stream = queue.queue_type() == Some(QueueType::Stream);
    let is_lasting = queue.durable && !queue.auto_delete && !queue.exclusive;
    let keys = queue_keys(queue, None, &Parts::plain());
    is_stream && is_lasting && keys.arguments.is_none() && keys.dead_letter.is_none()
}
