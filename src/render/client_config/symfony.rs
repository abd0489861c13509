//! Renders Symfony Messenger transports.

use super::advice::on_failure;
use super::literal::{Language, arguments, comment, string, unused};
use crate::contract::{ClientQueue, ClientVhost};
use crate::model::known_clients::Framework;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Writes one transport for each queue. With `auto_setup: false`, Messenger declares neither queues nor exchanges.
pub(super) fn symfony(text: &mut String, vhost: &ClientVhost) {
    let yaml = |text: &str| string(text, Language::SymfonyYaml);
    let mut used = BTreeSet::new();
    text.push_str("framework:\n    messenger:\n        transports:\n");
    for ClientQueue { declaration, route, on_failure: failure } in &vhost.queues {
        let queue = declaration.queue.as_str();
        let _ = writeln!(text, "            {}:", yaml(&transport(queue, &mut used)));
        text.push_str("                dsn: '%env(MESSENGER_TRANSPORT_DSN)%'\n");
        if let Some(kind) = failure {
            comment(text, "                # ", on_failure(Framework::Symfony, *kind));
        }
        // Without auto_setup, the exchange for Messenger's own retries does not exist.
        text.push_str("                retry_strategy:\n                    max_retries: 0\n");
        text.push_str("                options:\n                    auto_setup: false\n");
        if let Some(route) = route {
            text.push_str("                    exchange:\n");
            for (key, value) in [
                ("name", route.exchange.as_str()),
                ("type", &route.exchange_type),
                ("default_publish_routing_key", &route.routing_key),
            ] {
                let _ = writeln!(text, "                        {key}: {}", yaml(value));
            }
        }
        let _ = writeln!(text, "                    queues:\n                        {}:", yaml(queue));
        // By default, Messenger declares durable queues. 2 is AMQP_DURABLE, and 16 is AMQP_AUTODELETE.
        let flags = if declaration.durable { 2 } else { 0 } + if declaration.auto_delete { 16 } else { 0 };
        if flags != 2 {
            let _ = writeln!(text, "                            flags: {flags}");
        }
        text.push_str("                            arguments:");
        if declaration.arguments.is_empty() {
            text.push_str(" {}\n");
        } else {
            text.push('\n');
            arguments(text, &declaration.arguments, Language::SymfonyYaml, 32);
        }
    }
}

/// Returns an unused transport name, such as `orders_work` for queue `orders.work`.
fn transport(queue: &str, used: &mut BTreeSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = queue.chars().map(plain).collect();
    let name = if name.starts_with(|c: char| c.is_ascii_lowercase()) { name } else { format!("queue_{name}") };
    unused(name, used)
}
