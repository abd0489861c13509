//! Tests confirmations on a terminal, audit records, and signals.

use serde_json::Value;

use super::fixture::{DEAD, Fixture, REPLAY, WORK};
use crate::live::confirm::with_input;
use crate::support::amqp_proxy::{AmqpProxy, Stop};
use crate::support::{Node, until};

#[test]
fn replay_and_drop_are_confirmed_with_the_number() {
    let fixture = Fixture::new("confirmed", "classic");
    fixture.dead_letter(3);
    let vhost = fixture.vhost.name();
    let replay = format!("dlq replay {DEAD} --vhost {vhost} --canary 0 --settle 0s --allow no-consumers");
    let drop = format!("dlq drop {DEAD} --vhost {vhost} --all --no-backup");
    for (command, question) in
        [(&replay, "Replay 3 messages? [y/N]"), (&drop, "Drop 3 messages from orders.dead without a backup? [y/N]")]
    {
        for keys in ["n\n", "\n", "yellow\n", "\u{4}"] {
            let refused = with_input(&fixture.vhost, "", command, keys).expect_code(1);
            refused.expect_text(question).expect_text("error: not confirmed; no message was");
            assert_eq!((fixture.ready(DEAD), fixture.ready(WORK)), (3, 0), "{command} {keys:?}");
        }
    }
    with_input(&fixture.vhost, "", &format!("{drop} --limit 1"), "y\n")
        .expect_code(0)
        .expect_text("1 message dropped.");
    with_input(&fixture.vhost, "", &replay, "yes\n").expect_code(0).expect_text("2 messages replayed.");
    fixture.until_dead(0);
}

#[test]
fn audit_records_are_appended_to_a_file() {
    let mut fixture = Fixture::new("audit", "classic");
    fixture.dead_letter(3);
    let replayed = fixture.replay(&["--limit", "1", "--audit", "audit.jsonl"]).expect_code(0);
    assert!(!replayed.stderr.contains("audit:"), "{replayed}");
    fixture.topo = fixture.topo.env("TOPO_AUDIT", "audit.jsonl");
    let words = fixture.words("drop", &["--yes", "--all", "--backup", "b.jsonl"]);
    fixture.topo.run(words.iter().map(String::as_str)).expect_code(0);
    fixture.topo.run(["dlq", "restore", "b.jsonl", "--yes", "--vhost", "{vhost}"]).expect_code(0);
    let records: Vec<Value> =
        fixture.topo.read("audit.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let counts =
        records.iter().map(|it| (it["command"].as_str().unwrap(), it["done"].as_u64().or(it["restored"].as_u64())));
    assert_eq!(counts.collect::<Vec<_>>(), [("replay", Some(1)), ("drop", Some(2)), ("restore", Some(2))]);
    for record in &records {
        assert_eq!((&record["queue"], &record["vhost"]), (&DEAD.into(), &fixture.vhost.name().into()), "{record}");
        assert!(record["time"].as_str().unwrap().ends_with('Z') && record["user"].is_string(), "{record}");
    }
    // A file that cannot be written is noticed before the first message moves.
    let refused = fixture.replay(&["--audit", "missing/audit.jsonl"]).expect_code(1);
    refused.expect_error("missing/audit.jsonl");
    fixture.until_dead(2);
}

/// The second signal ends topo at once, here while the broker does not answer. The audit record states what was done
/// before.
#[test]
fn second_signal_ends_a_replay_with_a_record() {
    let fixture = Fixture::new("signals", "classic");
    fixture.dead_letter(5);
    let start = |proxy: &AmqpProxy, flags: &[&str]| {
        let url = proxy.url();
        let words = fixture.words("replay", &[REPLAY, &["--amqp-url", &url, "--audit", "audit.jsonl"], flags].concat());
        fixture.topo.start(words.iter().map(String::as_str))
    };
    let complete = AmqpProxy::to(Node::shared(), None);
    start(&complete, &["--limit", "1"]).wait().expect_code(0);
    let deletion = complete.methods().iter().rposition(|it| *it == "exchange.delete").unwrap();
    let stuck = AmqpProxy::to(Node::shared(), Some(Stop::After(deletion + 1)));
    let mut running = start(&stuck, &[]);
    until("the deletion of the exchange", || stuck.hangs().then_some(()));
    running.interrupt("INT");
    // Signals within 200 ms count as one: a terminal and a supervisor may both send it.
    until("the end", || {
        running.signal("INT");
        running.is_over().then_some(())
    });
    let output = running.wait().expect_code(4);
    output
        .expect_error("stopped immediately")
        .expect_text("messages that have already been published may be duplicated");
    let records = fixture.topo.read("audit.jsonl");
    let last: Value = serde_json::from_str(records.lines().last().unwrap()).unwrap();
    assert_eq!((&last["end"], &last["done"]), (&"stoppedImmediately".into(), &4.into()), "{last}");
    assert_eq!((fixture.ready(WORK), fixture.ready(DEAD)), (5, 0));
}
