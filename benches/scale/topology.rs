//! Generates the same objects as a spec, as a definitions file, and as requests for curl.

use std::fmt::Write;

use serde_json::{Value, json};

const QUEUES_OF_AN_EXCHANGE: usize = 10;

fn queue(number: usize) -> String {
    format!("service.{}.work.{number}", number / 20)
}

fn exchange(number: usize) -> String {
    format!("service.{}.events", number / QUEUES_OF_AN_EXCHANGE)
}

fn exchanges(queues: usize) -> usize {
    queues.div_ceil(QUEUES_OF_AN_EXCHANGE)
}

/// Summarizes the objects.
pub(crate) fn shown(queues: usize) -> String {
    format!("{queues} queues, {} exchanges, {queues} bindings", exchanges(queues))
}

/// Returns the objects as a spec.
pub(crate) fn spec(vhost: &str, queues: usize) -> String {
    spec_with(vhost, queues, "")
}

/// A line that makes a second lint rule fire on a queue: `ttl-without-dead-letter` in addition to `no-dead-letter`.
pub(crate) const SECOND_FINDING: &str = "    messageTtl: 7d\n";

/// Returns the objects as a spec with additional lines for each queue.
pub(crate) fn spec_with(vhost: &str, queues: usize, more: &str) -> String {
    let mut text = format!("version: 1\nvhost: {vhost}\nexchanges:\n");
    for number in 0..exchanges(queues) {
        let _ = writeln!(text, "  {}: {{type: topic}}", exchange(number * QUEUES_OF_AN_EXCHANGE));
    }
    text.push_str("queues:\n");
    for number in 0..queues {
        let _ = write!(
            text,
            "  {}:\n    type: classic\n    maxLength: 100000\n{more}    bindings:\n      - exchange: {}\n        routingKey: \"order.{number}.#\"\n",
            queue(number),
            exchange(number),
        );
    }
    text
}

/// Returns curl configurations, one for each kind of object, with the requests that topo sends.
pub(crate) fn requests(base: &str, vhost: &str, queues: usize) -> [String; 3] {
    let request = |method: &str, path: String, body: Value| {
        let body = body.to_string().replace('"', "\\\"");
        format!(
            "url = \"{base}/api/{path}\"\nrequest = {method}\ndata = \"{body}\"\nuser = \"guest:guest\"\nfail\n\
             header = \"content-type: application/json\"\noutput = /dev/null\n"
        )
    };
    let exchange_of = |number: usize| {
        let body = json!({"type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": {}});
        request("PUT", format!("exchanges/{vhost}/{}", exchange(number * QUEUES_OF_AN_EXCHANGE)), body)
    };
    let queue_of = |number: usize| {
        let arguments = json!({"x-queue-type": "classic", "x-max-length": 100_000});
        let body = json!({"durable": true, "auto_delete": false, "arguments": arguments});
        request("PUT", format!("queues/{vhost}/{}", queue(number)), body)
    };
    let binding_of = |number: usize| {
        let body = json!({"routing_key": format!("order.{number}.#"), "arguments": {}});
        request("POST", format!("bindings/{vhost}/e/{}/q/{}", exchange(number), queue(number)), body)
    };
    let all = |count: usize, of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<Vec<_>>().join("next\n");
    [all(exchanges(queues), &exchange_of), all(queues, &queue_of), all(queues, &binding_of)]
}

/// Returns only the queues, as a spec.
pub(crate) fn queues_alone(vhost: &str, queues: usize) -> String {
    let each = (0..queues).map(|number| format!("  {}: {{type: classic, maxLength: 100000}}\n", queue(number)));
    format!("version: 1\nvhost: {vhost}\nqueues:\n{}", each.collect::<String>())
}

/// Returns the objects as a definitions file of a vhost.
pub(crate) fn definitions(queues: usize) -> Value {
    definitions_with(queues, &json!({"x-queue-type": "classic", "x-max-length": 100_000}))
}

/// Returns the objects as a definitions file of a vhost, in which each queue has these arguments.
pub(crate) fn definitions_with(queues: usize, arguments: &Value) -> Value {
    let exchange_of = |number: usize| {
        json!({"name": exchange(number * QUEUES_OF_AN_EXCHANGE), "type": "topic", "durable": true, "auto_delete": false,
            "internal": false, "arguments": {}})
    };
    let queue_of =
        |number: usize| json!({"name": queue(number), "durable": true, "auto_delete": false, "arguments": arguments});
    let binding_of = |number: usize| {
        json!({"source": exchange(number), "destination": queue(number), "destination_type": "queue",
            "routing_key": format!("order.{number}.#"), "arguments": {}})
    };
    json!({
        "exchanges": (0..exchanges(queues)).map(exchange_of).collect::<Vec<_>>(),
        "queues": (0..queues).map(queue_of).collect::<Vec<_>>(),
        "bindings": (0..queues).map(binding_of).collect::<Vec<_>>(),
        "policies": [], "parameters": [],
    })
}
