//! Tests transient objects of clients: the export leaves them out, and `--prune` does not delete an object that a client
//! uses unless a flag allows it.

use serde_json::json;

use super::round_trip::{exported, plans_to_nothing};
use crate::scenarios::make_live;
use crate::support::{Node, Topo, Vhost, until};

/// The hazards of pruning, except the disruption of consumers.
const OTHERS: &str = "--allow=message-loss,mass-delete,routing-gap,routing-loss";
/// The queue on which a Celery worker receives commands.
const PIDBOX: &str = "celery@host.celery.pidbox";

/// Declares objects of a Celery worker with quorum queues, and a queue for the replies of another application. The queues
/// are classic, which does not affect the export.
fn declare_objects(vhost: &Vhost<'_>) {
    let levels = [0, 1, 2, 10];
    let delayed = |level: &u8| format!("celery_delayed_{level}");
    let exchange = |name: &str, kind: &str, durable: bool| json!({"name": name, "type": kind, "durable": durable});
    let mut exchanges = vec![
        exchange("celery", "direct", true),
        exchange("celeryev", "topic", true),
        exchange("celery_delayed_delivery", "topic", true),
        exchange("celery.pidbox", "fanout", false),
    ];
    exchanges.extend(levels.iter().map(|level| exchange(&delayed(level), "topic", true)));
    let mut queues = vec![
        json!({"name": "celery", "arguments": {"x-queue-type": "classic"}}),
        json!({"name": PIDBOX, "auto_delete": true}),
        json!({"name": "rpc.reply", "arguments": {"x-queue-type": "classic", "x-expires": 3_600_000}}),
    ];
    let mut next = "celery_delayed_delivery".to_owned();
    for level in &levels {
        let arguments = json!({
            "x-queue-type": "classic", "x-message-ttl": 1000 << level, "x-dead-letter-exchange": next,
        });
        queues.push(json!({"name": delayed(level), "arguments": arguments}));
        next = delayed(level);
    }
    let binding =
        |source: &str, queue: &str, key: &str| json!({"source": source, "destination": queue, "routing_key": key});
    let mut bindings = vec![
        binding("celery", "celery", "celery"),
        binding("celery_delayed_delivery", "celery", "#.celery"),
        binding("celery.pidbox", PIDBOX, ""),
    ];
    bindings.extend(levels.iter().map(|level| binding(&delayed(level), &delayed(level), "1.#")));
    make_live(vhost, &json!({"exchanges": exchanges, "queues": queues, "bindings": bindings}));
}

#[test]
fn transient_objects_are_left_out_and_ignored() {
    let vhost = Node::shared().vhost("transient");
    declare_objects(&vhost);
    let text = exported(&vhost);
    let header = text.lines().take_while(|line| line.starts_with('#')).map(|line| line.trim_start_matches(['#', ' ']));
    let header = header.collect::<Vec<_>>().join(" ");
    for expected in [
        "4 queues created by Celery for delayed delivery: celery_delayed_0, celery_delayed_1, celery_delayed_2, \
         celery_delayed_10",
        "1 exchange created by Celery for remote control: celery.pidbox",
        "1 queue that expires when unused: rpc.reply",
    ] {
        assert!(header.contains(expected), "{expected}\n{text}");
    }
    let spec: serde_json::Value = serde_yaml::from_str(&text).unwrap();
    assert_eq!(spec["ignore"], json!(["*.pidbox", "*celery_delayed_*", "rpc.reply"]), "{text}");
    let names = |kind: &str| spec[kind].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        (names("queues"), names("exchanges")),
        (vec!["celery".to_owned()], ["celery", "celeryev"].map(str::to_owned).to_vec())
    );
    plans_to_nothing(&vhost, &text);
    let owner = format!("{text}owns: ['*']\n");
    plans_to_nothing(&vhost, &owner);
    let topo = Topo::new(&vhost).file("topology.yaml", &owner);
    topo.run(["plan", "--prune", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn transient_object_in_use_is_not_pruned_without_an_allowance() {
    let vhost = Node::shared().vhost("prune-transient");
    declare_objects(&vhost);
    let amqp = vhost.amqp();
    let consumers = ["celery", PIDBOX, "rpc.reply"].map(|queue| amqp.hold(queue, 0));
    until("the statistics list the consumers", || (vhost.list("consumers").len() == 3).then_some(()));
    let spec = "owns: ['*']\nexchanges:\n  celery: {type: direct}\n  celeryev: {type: topic}\n\
                queues:\n  celery: {type: classic, bindings: [{exchange: celery, routingKey: celery}]}\n";
    let topo = Topo::new(&vhost).spec(spec);
    let screen = until("the plan lists the consumers", || {
        let screen = topo.run(["plan", "--prune", OTHERS]);
        (screen.stdout.matches("1 consumer").count() >= 3).then_some(screen)
    });
    let words = screen.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        format!(
            "it is a transient exchange of Celery, and its messages reach queue {PIDBOX}, which has 1 consumer; to keep it,"
        ),
        "it is a transient exchange of Celery, and its messages reach queue celery, which has 1 consumer; to keep it,"
            .to_owned(),
        "it is a transient queue of Celery, and its messages reach queue celery, which has 1 consumer; to keep it,"
            .to_owned(),
        "it is a queue that expires when unused, in use by 1 consumer; to keep it, add its name to `ignore`".to_owned(),
    ] {
        assert!(words.contains(&expected), "{expected}\n{screen}");
    }
    let count = vhost.names("queues").len();
    let one = format!("--allow=consumer-disruption@exchanges/{}/celery.pidbox", vhost.name());
    topo.run(["apply", "-y", "--prune", OTHERS]).expect_code(3);
    topo.run(["apply", "-y", "--prune", OTHERS, &one]).expect_code(3);
    assert_eq!(vhost.names("queues").len(), count);
    topo.run(["apply", "-y", "--prune", OTHERS, "--allow=consumer-disruption"]).expect_code(0);
    // topo never deletes an auto-delete queue.
    assert_eq!(vhost.names("queues"), ["celery", PIDBOX]);
    drop(consumers);
}
