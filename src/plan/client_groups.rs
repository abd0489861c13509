//! Groups the consumers of a queue by their clients, and names the clients.

use super::activity::{QueueActivity, QueueClient};
use crate::model::QueueName;
use crate::model::count::count;
use crate::model::known_clients::{KnownClient, OnCancel, OnMissing, candidates};
use std::collections::BTreeMap;

/// The maximum number of hosts in the description of a client.
const MAX_HOSTS: usize = 3;

/// The consumers of a queue that have the same client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientGroup {
    /// The product name that the client library sends; `None` if it sends none, or if the connection is not listed.
    pub product: Option<String>,
    /// The version of the client library.
    pub version: Option<String>,
    /// The number of consumers.
    pub consumers: u64,
    /// The distinct hosts, without ports.
    pub hosts: Vec<String>,
}

/// Groups the consumers of a queue by product and version. Returns an empty list if the consumers or their clients are
/// unknown.
pub fn client_groups(live: &QueueActivity) -> Vec<ClientGroup> {
    matching_groups(live, |_| true)
}

/// Groups the consumers of a queue whose clients match a condition.
pub(super) fn matching_groups(live: &QueueActivity, matches: impl Fn(&QueueClient) -> bool) -> Vec<ClientGroup> {
    let (Some(addresses), Some(clients)) = (&live.consumers, &live.clients) else { return Vec::new() };
    let mut groups: BTreeMap<(&Option<String>, &Option<String>), ClientGroup> = BTreeMap::new();
    for (address, client) in addresses.iter().zip(clients).filter(|(_, client)| matches(client)) {
        let group = groups.entry((&client.product, &client.version)).or_insert_with(|| ClientGroup {
            product: client.product.clone(),
            version: client.version.clone(),
            consumers: 0,
            hosts: Vec::new(),
        });
        group.consumers += 1;
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
        if !host.is_empty() && !group.hosts.iter().any(|known| known == host) {
            group.hosts.push(host.to_owned());
        }
    }
    groups.into_values().collect()
}

impl ClientGroup {
    /// Returns the known clients that match the group: several if topo cannot distinguish them, none for an unknown
    /// product. `exists` returns true for the name of an existing queue in the vhost.
    pub fn known(&self, queue: &QueueName, exists: impl Fn(&str) -> bool) -> Vec<&'static KnownClient> {
        candidates(self.product.as_deref().unwrap_or_default(), queue.as_str(), exists)
    }

    /// Describes the consumers: `2 consumers using Celery (py-amqp 5.4.2) at 10.0.0.4`. `known` is the result of
    /// [`known`](Self::known).
    pub fn text(&self, known: &[&KnownClient]) -> String {
        format!("{} using {}", count(self.consumers, "consumer"), self.name(known))
    }

    /// Names the client and its hosts: `Celery (py-amqp 5.4.2) at 10.0.0.4`.
    pub fn name(&self, known: &[&KnownClient]) -> String {
        let version = self.version.as_deref().map_or_else(String::new, |version| format!(" {version}"));
        let name = match (known, &self.product) {
            ([], None) => "an unidentified client".to_owned(),
            ([], Some(product)) => format!("the unknown client {product}{version}"),
            ([one], _) if one.name == one.library.name => format!("{}{version}", one.name),
            ([one], _) => format!("{} ({}{version})", one.name, one.library.name),
            ([first, ..], _) => format!("{}{version}", first.library.name),
        };
        let hosts = match self.hosts.len() {
            0 => String::new(),
            few if few <= MAX_HOSTS => format!(" at {}", self.hosts.join(", ")),
            many => format!(" at {} and {} more", self.hosts[..MAX_HOSTS].join(", "), many - MAX_HOSTS),
        };
        name + &hosts
    }

    /// Returns true if a canceled consumer of the group may declare the queue again. Returns true for an unknown
    /// client.
    pub fn may_declare(&self, known: &[&KnownClient]) -> bool {
        let declares = |client: &&KnownClient| {
            matches!(
                (client.on_cancel, client.on_missing),
                (OnCancel::Declares, _) | (OnCancel::Subscribes, OnMissing::Declares)
            )
        };
        known.is_empty() || known.iter().any(declares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(consumers: &[(&str, Option<&str>, Option<&str>)]) -> QueueActivity {
        let client = |(_, product, version): &(&str, Option<&str>, Option<&str>)| QueueClient {
            product: product.map(str::to_owned),
            version: version.map(str::to_owned),
            has_global_prefetch: false,
        };
        QueueActivity {
            consumers: Some(consumers.iter().map(|(address, ..)| (*address).to_owned()).collect()),
            clients: Some(consumers.iter().map(client).collect()),
            ..QueueActivity::default()
        }
    }

    fn texts(consumers: &[(&str, Option<&str>, Option<&str>)], queues: &[&str]) -> Vec<String> {
        let groups = client_groups(&live(consumers));
        groups.iter().map(|group| group.text(&group.known(&"jobs".into(), |name| queues.contains(&name)))).collect()
    }

    #[test]
    fn consumers_of_the_same_client_are_one_group() {
        let celery = (Some("py-amqp"), Some("5.4.2"));
        let at = |address| (address, celery.0, celery.1);
        assert_eq!(texts(&[at("10.0.0.4:5000")], &[]), ["1 consumer using Celery (py-amqp 5.4.2) at 10.0.0.4"]);
        assert_eq!(
            texts(&[at("a:1"), at("a:2"), at("b:1"), at("c:1"), at("d:1"), at("::1:7")], &[]),
            ["6 consumers using Celery (py-amqp 5.4.2) at a, b, c and 2 more"]
        );
        assert_eq!(
            texts(&[at("a:1"), ("a:2", Some("py-amqp"), Some("5.3")), ("", Some("py-amqp"), None)], &[]),
            [
                "1 consumer using Celery (py-amqp)",
                "1 consumer using Celery (py-amqp 5.3) at a",
                "1 consumer using Celery (py-amqp 5.4.2) at a"
            ]
        );
        assert!(client_groups(&QueueActivity::default()).is_empty());
    }

    #[test]
    fn ambiguous_clients_are_named_after_the_library() {
        assert_eq!(texts(&[("a:1", None, None)], &[]), ["1 consumer using an unidentified client at a"]);
        assert_eq!(
            texts(&[("a:1", Some("lapin"), Some("4"))], &[]),
            ["1 consumer using the unknown client lapin 4 at a"]
        );
        assert_eq!(texts(&[("a:1", Some("aiormq"), Some("6.9"))], &[]), ["1 consumer using aiormq 6.9 at a"]);
        let pika = ("a:1", Some("Pika Python Client Library"), Some("1.4.4"));
        assert_eq!(texts(&[pika], &[]), ["1 consumer using pika 1.4.4 at a"]);
        assert_eq!(texts(&[pika], &["jobs", "jobs.DQ", "jobs.XQ"]), ["1 consumer using dramatiq (pika 1.4.4) at a"]);
    }

    #[test]
    fn clients_that_declare_queues_are_distinguished() {
        let may_declare = |product: &str| {
            let groups = client_groups(&live(&[("a:1", Some(product), None)]));
            groups[0].may_declare(&groups[0].known(&"jobs".into(), |_| false))
        };
        assert!(may_declare("py-amqp") && may_declare("an unknown product") && may_declare("aiormq"));
        assert!(!may_declare("Pika Python Client Library") && !may_declare("Bunny"));
    }
}
