//! Adds the hazards for the client applications of queues that the plan deletes or recreates: what happens to each
//! client, by name, and which messages are lost because applications publish through the default exchange.

use super::activity::{DefaultExchangePublishes, QueueActivity, QueueClient};
use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, PlannedChange};
use super::hazard::{Hazard, HazardKind};
use super::verdict::Verdict;
use crate::model::count::count;
use crate::model::known_clients::{KnownClient, OnCancel, OnMissing, Reaction, candidates};
use crate::model::{Object, Queue, QueueName, QueueType};
use crate::rabbitmq::needs_pause;
use std::collections::BTreeMap;

/// The maximum number of addresses in the description of a client.
const MAX_ADDRESSES: usize = 3;

/// Adds the hazards for the clients of all queues that the plan deletes or recreates.
pub(super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let mut found = Vec::new();
    for change in &builder.changes {
        let (Some(Object::Queue(name, before)), ChangeKind::Delete | ChangeKind::Recreate) =
            (&change.before, change.kind)
        else {
            continue;
        };
        let Some(live) = context.activity.queues.get(name) else { continue };
        let mut add = |kind, text, must_be_allowed| {
            let address = change.address.clone();
            found.push(Hazard { kind, address, text, messages: None, must_be_allowed });
        };
        if let Some(publishes) = live.default_exchange {
            let text = default_exchange_text(publishes, change.kind);
            add(HazardKind::PublishLoss, text, publishes.per_second > 0);
        }
        for text in client_texts(context, change, name, live) {
            add(HazardKind::ConsumerDisruption, text, true);
        }
        if let Some(text) = global_prefetch_text(context, change, before, live) {
            add(HazardKind::ConsumerDisruption, text, true);
        }
    }
    builder.hazards.extend(found);
}

fn default_exchange_text(publishes: DefaultExchangePublishes, kind: ChangeKind) -> String {
    let DefaultExchangePublishes { per_second, is_upper_bound } = publishes;
    let rate = match per_second {
        0 => "none in the last minute".to_owned(),
        many if is_upper_bound => {
            format!(
                "at most {} per second in the last minute; the broker does not report the exact number",
                count(many, "message")
            )
        }
        many => format!("{} per second in the last minute", count(many, "message")),
    };
    let lost = match kind {
        ChangeKind::Delete => "these messages will be lost",
        ChangeKind::Create | ChangeKind::Change | ChangeKind::Recreate | ChangeKind::Conflict => {
            "messages that arrive while the queue does not exist will be lost"
        }
    };
    format!(
        "applications publish to it through the default exchange ({rate}), which topo cannot redirect: {lost}; publish \
         to a different exchange, or pause the publishers during the apply"
    )
}

/// The consumers of a queue that have the same client.
#[derive(Default)]
struct Group {
    consumers: u64,
    /// The hosts, without ports.
    hosts: Vec<String>,
}

/// Returns a sentence for each client of a queue.
fn client_texts(
    context: &PlanContext<'_>,
    change: &PlannedChange,
    queue: &QueueName,
    live: &QueueActivity,
) -> Vec<String> {
    let (Some(addresses), Some(clients)) = (&live.consumers, &live.clients) else { return Vec::new() };
    let mut groups: BTreeMap<(&Option<String>, &Option<String>), Group> = BTreeMap::new();
    for (address, QueueClient { product, version, .. }) in addresses.iter().zip(clients) {
        let group = groups.entry((product, version)).or_default();
        group.consumers += 1;
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host).to_owned();
        if !host.is_empty() && !group.hosts.contains(&host) {
            group.hosts.push(host);
        }
    }
    let is_quorum = |object: &Option<Object>| match object {
        Some(Object::Queue(_, queue)) => queue.queue_type() == Some(QueueType::Quorum),
        Some(Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Binding(_) | Object::Record(_))
        | None => false,
    };
    let has_pause = needs_pause(context.profile.version, is_quorum(&change.before));
    let exists = |name: &str| context.current.queues.contains_key(&QueueName::from(name));
    let texts = groups.into_iter().map(|((product, version), group)| {
        let known = candidates(product.as_deref().unwrap_or_default(), queue.as_str(), exists);
        let version = version.as_deref().map_or_else(String::new, |version| format!(" {version}"));
        let name = match (&known[..], product) {
            ([], None) => "a client that the broker does not list yet, or that does not report its name,".to_owned(),
            ([], Some(product)) => format!("unknown client {product}{version}"),
            ([one], _) if one.name == one.library.name => format!("{}{version}", one.name),
            ([one], _) => format!("{} ({}{version})", one.name, one.library.name),
            ([first, ..], _) => format!("{}{version}", first.library.name),
        };
        let consumers =
            if group.consumers == 1 { String::new() } else { format!("{} of ", count(group.consumers, "consumer")) };
        format!("{consumers}{name}{} {}", hosts(&group.hosts), reactions(&known, change, has_pause))
    });
    texts.collect()
}

/// Formats hosts: ` at 10.0.0.4, 10.0.0.5`.
fn hosts(hosts: &[String]) -> String {
    match hosts.len() {
        0 => String::new(),
        few if few <= MAX_ADDRESSES => format!(" at {}", hosts.join(", ")),
        many => format!(" at {} and {} more", hosts[..MAX_ADDRESSES].join(", "), many - MAX_ADDRESSES),
    }
}

/// Describes what happens to a client. `known` contains several clients if the broker cannot distinguish them.
fn reactions(known: &[&KnownClient], change: &PlannedChange, has_pause: bool) -> String {
    let mut by_reaction: Vec<(String, Vec<&str>)> = Vec::new();
    for client in known {
        let text = reaction(client, change, has_pause);
        match by_reaction.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(client.name),
            None => by_reaction.push((text, vec![client.name])),
        }
    }
    match &by_reaction[..] {
        [] => "will be canceled: its reaction is unknown, so check that it consumes after the apply".to_owned(),
        [(text, _)] => text.clone(),
        several => {
            let parts: Vec<String> =
                several.iter().map(|(text, names)| format!("{} {text}", names.join(" or "))).collect();
            format!("will be canceled; it depends on the framework what happens then: {}", parts.join("; "))
        }
    }
}

fn reaction(client: &KnownClient, change: &PlannedChange, has_pause: bool) -> String {
    let deleted = change.kind == ChangeKind::Delete;
    match (client.on_cancel, client.on_missing) {
        (OnCancel::Exits, _) if deleted => "will exit".to_owned(),
        (OnCancel::Exits, _) => "will exit: start it again after the apply".to_owned(),
        (OnCancel::Hangs, _) if deleted => "will hang without an error".to_owned(),
        (OnCancel::Hangs, _) => "will hang without an error: restart it after the apply".to_owned(),
        (OnCancel::NotCanceled, _) if deleted => "will no longer find the queue".to_owned(),
        (OnCancel::NotCanceled, _) => {
            "will continue, or exit with a 404 if it uses the queue during the swap".to_owned()
        }
        (OnCancel::Declares, _) | (OnCancel::Subscribes, OnMissing::Declares) if deleted => {
            "will declare the queue again".to_owned()
        }
        (OnCancel::Subscribes, OnMissing::Exits) if deleted => "will exit".to_owned(),
        (OnCancel::Subscribes, OnMissing::Subscribes) if deleted => {
            "will try to subscribe again every few seconds".to_owned()
        }
        (OnCancel::Declares | OnCancel::Subscribes, OnMissing::Exits) if has_pause => {
            format!("will exit with a 404 or 406: start it again after the apply{}", declared(change, ", with "))
        }
        (OnCancel::Declares, _) | (OnCancel::Subscribes, OnMissing::Declares)
            if has_pause || client.on_cancel == OnCancel::Declares =>
        {
            let end = match client.on_mismatch {
                Reaction::Exits => "exit",
                Reaction::Retries => "hang",
            };
            format!("will declare the queue again, and {end} with a 406{}", declared(change, " unless it declares "))
        }
        (OnCancel::Declares | OnCancel::Subscribes, _) => "will subscribe again".to_owned(),
    }
}

/// Returns the settings that a client must declare, after `prefix`: ` unless it declares x-max-length 5000`. Returns an
/// empty string without such settings.
fn declared(change: &PlannedChange, prefix: &str) -> String {
    let is_compared = |verdict| matches!(verdict, Verdict::Conflict);
    let settings: Vec<String> = change
        .fields
        .iter()
        .filter(|field| is_compared(field.verdict))
        .map(|field| match &field.after {
            Some(value) => format!("{} {value}", field.field),
            None => format!("no {}", field.field),
        })
        .collect();
    match settings.is_empty() {
        true => String::new(),
        false => format!("{prefix}{}", settings.join(" and ")),
    }
}

/// Describes consumers with a global prefetch count on a queue that becomes a quorum queue. Up to 4.2, quorum queues
/// refuse such consumers with 540 NOT_IMPLEMENTED.
fn global_prefetch_text(
    context: &PlanContext<'_>,
    change: &PlannedChange,
    before: &Queue,
    live: &QueueActivity,
) -> Option<String> {
    let Some(Object::Queue(_, after)) = &change.after else { return None };
    let becomes_quorum =
        after.queue_type() == Some(QueueType::Quorum) && before.queue_type() != Some(QueueType::Quorum);
    if change.kind != ChangeKind::Recreate || !becomes_quorum || context.profile.version.is_at_least(4, 3) {
        return None;
    }
    let with_global = live.clients.iter().flatten().filter(|client| client.has_global_prefetch).count() as u64;
    (with_global > 0).then(|| {
        let verb = if with_global == 1 { "uses" } else { "use" };
        format!(
            "{} {verb} a global prefetch count, which quorum queues do not support before RabbitMQ 4.3: the broker will \
             refuse to let them subscribe (540 NOT_IMPLEMENTED); configure the clients for quorum queues before the \
             apply, or set the prefetch count with global=false",
            count(with_global, "consumer")
        )
    })
}
