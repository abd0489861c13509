//! Tests that inspections change neither the order nor the content of a queue.

use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, FieldTable};
use serde_json::json;

use super::fixture::{DEAD, EXCHANGE, Fixture, KINDS, WORK, header_names, numbers};
use crate::support::worker::header;
use crate::support::{Message, Node, Outcome, Topo};

/// The body, the exchange and the routing key, the names of the headers, and the deaths.
type Content = (Vec<u8>, [String; 2], Vec<String>, String);

/// Returns the messages without the headers that count deliveries.
fn contents(messages: &[Message]) -> Vec<Content> {
    let content = |message: &Message| {
        let mut names = header_names(message);
        names.retain(|name| !["x-delivery-count", "x-acquired-count"].contains(&name.as_str()));
        names.sort();
        let mut deaths = format!("{:?}", header(&message.properties, "x-death"));
        // The two queues have received the messages at different times.
        while let Some((before, after)) = deaths.split_once("Timestamp(") {
            let after = after.split_once(')').map_or("", |(_, after)| after);
            deaths = format!("{before}time{after}");
        }
        (message.body.clone(), [message.exchange.clone(), message.routing_key.clone()], names, deaths)
    };
    messages.iter().map(content).collect()
}

#[test]
fn inspections_keep_order_and_content() {
    for kind in KINDS {
        let [inspected, other] = ["inspected", "untouched"].map(|hint| {
            let fixture = Fixture::new(hint, kind);
            fixture.dead_letter(500);
            fixture
        });
        for flags in [&["--limit", "1"][..], &["--limit", "7"], &[], &["--limit", "499"], &["--limit", "3"]] {
            inspected.dlq("list", flags).expect_code(0);
            inspected.until_dead(500);
        }
        inspected.dlq("peek", &["--limit", "20"]).expect_code(0);
        inspected.dlq("peek", &["--position", "400", "--limit", "1"]).expect_code(0).expect_text("message 400 ");
        inspected.dlq("export", &["--out", "all.jsonl"]).expect_code(0);
        inspected.until_dead(500);
        let (first, second) = (inspected.drain(DEAD), other.drain(DEAD));
        assert_eq!(numbers(&first), (0..500).collect::<Vec<_>>(), "{kind}");
        assert_eq!(contents(&first), contents(&second), "{kind}");
        let exported = inspected.topo.read("all.jsonl");
        let bodies: Vec<String> =
            exported.lines().map(|line| json_of(line)["body"].as_str().unwrap().to_owned()).collect();
        assert_eq!(bodies, (0..500).map(|number| number.to_string()).collect::<Vec<_>>(), "{kind}");
    }
}

fn json_of(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn messages_are_grouped() {
    let fixture = Fixture::new("groups", "classic");
    fixture.dead_letter(10);
    let listed = fixture.dlq("list", &["--group-by", "source,reason,routing-key", "--format", "json"]);
    let listed = listed.expect_code(0).json();
    let group = |key: &str| json!({"source": "orders.work", "reason": "rejected", "routing-key": key});
    let groups = listed["groups"].as_array().unwrap();
    let found: Vec<_> = groups.iter().map(|it| (&it["values"], it["messages"].as_u64().unwrap())).collect();
    assert_eq!(found, [(&group("order.created"), 5), (&group("order.paid"), 5)]);
    assert_eq!((&listed["messages"], &listed["complete"]), (&json!(10), &json!(true)));
    let text = fixture.dlq("list", &[]).expect_code(0);
    text.expect_text("10 messages: all inspected and requeued.").expect_text("order.created");
    // Without a queue, no message is read.
    let all = fixture.topo.run(["dlq", "list", "--vhost", "{vhost}"]).expect_code(0);
    all.expect_text("orders.dead").expect_text("Next: topo dlq list orders.dead --vhost ");
    let all = fixture.topo.run(["dlq", "list", "--vhost", "{vhost}", "--format", "json"]).expect_code(0).json();
    assert_eq!(all["queues"][0]["sources"], json!(["orders.work"]));
    assert_eq!(all["queues"].as_array().unwrap().len(), 1);
}

#[test]
fn history_properties_and_headers_are_shown() {
    let fixture = Fixture::new("peek", "classic");
    fixture.dead_letter(2);
    let shown = fixture.dlq("peek", &["--limit", "1"]).expect_code(0);
    let shown = shown.expect_text("  source        orders.work\n").expect_text("  reason        rejected\n");
    let shown = shown.expect_text("  published to  exchange orders, key order.paid\n");
    let shown = shown.expect_text("  history       rejected in orders.work, 20").expect_text("n: 0\n");
    shown.expect_text("  message_id    m0\n").expect_text("2 messages: 1 inspected and requeued.");
    let shown = fixture.dlq("peek", &["--id", "m1", "--format", "json"]).expect_code(0).json();
    assert_eq!((shown[0]["position"].as_u64(), shown.as_array().unwrap().len()), (Some(2), 1));
    assert_eq!(shown[0]["headers"]["tenant"], "beta");
    assert_eq!(shown[0]["deaths"][0]["routingKeys"], json!(["order.created"]));
    let fingerprint = shown[0]["fingerprint"].as_str().unwrap();
    fixture.dlq("peek", &["--id", fingerprint]).expect_code(0).expect_text("message 2 ");
}

#[test]
fn conditions_select_messages() {
    let fixture = Fixture::new("selection", "classic");
    fixture.dead_letter(30);
    let count = |flags: &[&str]| {
        let listed = fixture.dlq("list", &[flags, &["--format", "json"]].concat());
        listed.expect_code(0).json()["matched"].as_u64().unwrap()
    };
    for (flags, expected) in [
        (&["--source", "orders.work"][..], 30),
        (&["--source", "other"], 0),
        (&["--source", "other", "--source", "orders.work"], 30),
        (&["--reason", "rejected"], 30),
        (&["--reason", "expired"], 0),
        (&["--routing-key", "order.p*"], 15),
        (&["--header", "tenant=acme"], 10),
        (&["--header", "tenant=*e*"], 30),
        (&["--header", "n=7"], 1),
        (&["--header", "absent"], 0),
        (&["--header", "tenant=acme", "--routing-key", "order.paid"], 5),
        (&["--body", "29"], 1),
        (&["--error", "Gateway"], 0),
        (&["--position", "3", "--position", "4"], 2),
        (&["--since", "1h"], 30),
        (&["--until", "1h"], 0),
        (&["--since", "2020-01-01T00:00:00Z", "--until", "2100-01-01T00:00:00Z"], 30),
    ] {
        assert_eq!(count(flags), expected, "{flags:?}");
    }
}

#[test]
fn odd_names_are_accepted() {
    for name in ["a/b", "a b", "50%", "é 漢", &"q".repeat(250)] {
        let vhost = Node::shared().vhost("odd/ü %");
        let (work, dead) = ("work", name);
        let spec = format!(
            "queues: {{{work}: {{type: classic, deadLetter: {name:?}}}}}\ndeadLetterQueues: {{{name:?}: {{type: classic, \
             exchange: {{name: dlx}}}}}}\n"
        );
        let topo = Topo::new(&vhost).spec(&spec);
        topo.run(["apply", "topology.yaml", "--yes", "--quiet"]).expect_code(0);
        let amqp = vhost.amqp();
        amqp.fill(work, 3);
        assert_eq!(amqp.reject(work, 3), 3);
        topo.run(["dlq", "list", dead, "--vhost", "{vhost}"]).expect_code(0).expect_text("3 messages: all inspected");
        let replay =
            ["dlq", "replay", dead, "--vhost", "{vhost}", "--yes", "--allow", "no-consumers", "--settle", "0s"];
        topo.run(replay).expect_code(0).expect_text("3 messages replayed.");
        assert_eq!((amqp.ready(work), amqp.ready(dead)), (3, 0), "{name}");
    }
}

/// The errors of workers and frameworks are in headers with different names.
#[test]
fn errors_are_found_in_the_headers_of_frameworks() {
    let fixture = Fixture::new("errors", "classic");
    let names =
        ["x-last-error", "MT-Fault-Message", "NServiceBus.ExceptionInfo.Message", "x-exception-message", "other"];
    for name in names {
        let mut headers = FieldTable::default();
        headers.insert(name.into(), AMQPValue::LongString(format!("GatewayTimeout in {name}").into()));
        let properties = AMQPProperties::default().with_headers(headers);
        assert_eq!(fixture.amqp.publish_with(EXCHANGE, "order.paid", "0", properties), Outcome::Routed);
    }
    fixture.fail(WORK, names.len());
    fixture.until_dead(names.len());
    let listed = fixture.dlq("list", &["--error", "GatewayTimeout", "--group-by", "error", "--format", "json"]);
    let listed = listed.expect_code(0).json();
    assert_eq!((&listed["matched"], listed["groups"].as_array().unwrap().len()), (&4.into(), 4), "{listed}");
    let peeked = fixture.dlq("peek", &["--error", "x-last-error"]).expect_code(0);
    peeked.expect_text("  error         GatewayTimeout in x-last-error\n");
}
