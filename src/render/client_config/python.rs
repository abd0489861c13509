//! Renders configurations for Celery and FastStream.

use super::advice::on_failure;
use super::literal::{Language, arguments, comment, string};
use crate::contract::{ClientQueue, ClientVhost, Declaration};
use crate::model::known_clients::Framework;
use crate::model::{ArgumentValue, Arguments};
use crate::render::style::clean;
use std::fmt::Write;

fn python(text: &str) -> String {
    string(text, Language::Python)
}

/// Writes Celery's `task_queues` setting.
///
/// Without `no_declare`, Celery always binds a queue to an exchange. It replaces a missing exchange and the default
/// exchange with its own `celery` exchange.
pub(super) fn celery(text: &mut String, vhost: &ClientVhost) {
    let declares = "Without no_declare, Celery declares the queues with these arguments, and binds queues that have no \
                    exchange to its own exchange.";
    comment(text, "# ", declares);
    let has_exchange = vhost.queues.iter().any(|queue| queue.route.is_some());
    let _ = writeln!(text, "from kombu import {}\n", if has_exchange { "Exchange, Queue" } else { "Queue" });
    match &vhost.queues[..] {
        [only] => {
            let _ = writeln!(text, "app.conf.task_default_queue = {}", python(only.declaration.queue.as_str()));
        }
        _ => text.push_str("# Without a default queue, each task requires the queue option or a route.\n"),
    }
    text.push_str("# Celery must not create other queues.\napp.conf.task_create_missing_queues = False\n");
    text.push_str("app.conf.task_queues = [\n");
    for ClientQueue { declaration, route, on_failure: failure } in &vhost.queues {
        let is_quorum = declaration.arguments.get("x-queue-type").and_then(ArgumentValue::as_text) == Some("quorum");
        // Celery ignores `no_declare` for delayed delivery.
        if let Some(route) = route.as_ref().filter(|route| is_quorum && route.exchange_type != "direct") {
            let sentence = format!(
                "Warning: Celery also binds this queue with the key #.{}, for delayed delivery with quorum queues, \
                 and declares celery_delayed_* objects. If the application only consumes messages, remove \
                 exchange and routing_key.",
                clean(&route.routing_key)
            );
            comment(text, "    # ", &sentence);
        }
        if let Some(kind) = failure {
            comment(text, "    # ", on_failure(Framework::Celery, *kind));
        }
        let _ = writeln!(text, "    Queue(\n        {},", python(declaration.queue.as_str()));
        if let Some(route) = route {
            let (name, kind) = (python(route.exchange.as_str()), python(&route.exchange_type));
            let _ = writeln!(text, "        exchange=Exchange({name}, type={kind}, no_declare=True),");
            let _ = writeln!(text, "        routing_key={},", python(&route.routing_key));
        }
        properties(text, declaration);
        dictionary(text, "queue_arguments", &declaration.arguments);
        text.push_str("        no_declare=True,\n    ),\n");
    }
    text.push_str("]\n");
    celery_routes(text, vhost);
}

/// Writes the routes that make Celery publish to direct exchanges. Without such a route, Celery replaces a direct
/// exchange with the default exchange (`celery.app.amqp`, `send_task_message`).
fn celery_routes(text: &mut String, vhost: &ClientVhost) {
    let route = |queue: &ClientQueue| {
        let route = queue.route.as_ref().filter(|route| route.exchange_type == "direct")?;
        let name = python(queue.declaration.queue.as_str());
        let (exchange, key) = (python(route.exchange.as_str()), python(&route.routing_key));
        Some((name.clone(), format!("{{\"queue\": {name}, \"exchange\": {exchange}, \"routing_key\": {key}}}")))
    };
    let routes: Vec<(String, String)> = vhost.queues.iter().filter_map(route).collect();
    if routes.is_empty() {
        return;
    }
    let reason = "If the route of a task does not set exchange and routing_key, Celery publishes the task through the \
                  default exchange instead of a direct exchange.";
    comment(text, "# ", reason);
    match (&vhost.queues[..], &routes[..]) {
        ([_], [(_, route)]) => {
            let _ = writeln!(text, "app.conf.task_routes = {{\"*\": {route}}}");
        }
        _ => {
            comment(text, "# ", "Select a route for each task: app.conf.task_routes = {\"TASK\": ROUTES[\"QUEUE\"]}");
            text.push_str("ROUTES = {\n");
            for (name, route) in routes {
                let _ = writeln!(text, "    {name}: {route},");
            }
            text.push_str("}\n");
        }
    }
}

/// Writes the FastStream queues. FastStream always adds the `x-queue-type` argument, with the value of `queue_type`.
pub(super) fn faststream(text: &mut String, vhost: &ClientVhost) {
    text.push_str("from faststream.rabbit import QueueType, RabbitQueue\n\n");
    text.push_str(
        "# Pass each queue to the decorator, without an exchange: @broker.subscriber(QUEUES[name])\nQUEUES = {\n",
    );
    for ClientQueue { declaration, on_failure: failure, .. } in &vhost.queues {
        if !is_valid_faststream_name(declaration.queue.as_str()) {
            let warning = "Warning: FastStream cannot use this queue. Its AMQP library, pamqp, permits only ASCII \
                           alphanumeric characters, spaces and -_.:@#,/+ in names.";
            comment(text, "    # ", warning);
        }
        if let Some(kind) = failure {
            comment(text, "    # ", on_failure(Framework::FastStream, *kind));
        }
        let name = python(declaration.queue.as_str());
        let _ = writeln!(text, "    {name}: RabbitQueue(\n        {name},");
        let mut rest = declaration.arguments.clone();
        let kind = rest.remove("x-queue-type");
        let is_quorum = kind.as_ref().and_then(ArgumentValue::as_text) == Some("quorum");
        let _ = writeln!(text, "        queue_type=QueueType.{},", if is_quorum { "QUORUM" } else { "CLASSIC" });
        properties(text, declaration);
        dictionary(text, "arguments", &rest);
        text.push_str("        declare=False,\n    ),\n");
    }
    text.push_str("}\n");
}

/// Returns true if pamqp, which aio-pika uses, accepts the queue name (pamqp 3.3).
fn is_valid_faststream_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:@#,/+ ".contains(c))
}

fn properties(text: &mut String, declaration: &Declaration) {
    let _ = writeln!(text, "        durable={},", if declaration.durable { "True" } else { "False" });
    if declaration.auto_delete {
        text.push_str("        auto_delete=True,\n");
    }
}

fn dictionary(text: &mut String, name: &str, values: &Arguments) {
    if values.is_empty() {
        return;
    }
    let _ = writeln!(text, "        {name}={{");
    arguments(text, values, Language::Python, 12);
    text.push_str("        },\n");
}
