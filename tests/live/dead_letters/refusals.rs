//! Tests bad input, hazards, missing permissions and concurrent runs. No message moves.

use super::fixture::{DEAD, EXCHANGE, Fixture, WORK, header_names};
use crate::support::{Argument, NONE, Node, Topo, text, until};
use lapin::protocol::basic::AMQPProperties;

#[test]
fn missing_and_other_queues_are_refused() {
    let fixture = Fixture::new("other", "classic");
    let run = |words: &[&str]| fixture.topo.run([&["dlq"], words, &["--vhost", "{vhost}"]].concat());
    let missing = run(&["list", "orders.daed"]).expect_code(64);
    let missing = missing.expect_error("queue `orders.daed` does not exist").expect_text("did you mean `orders.dead`?");
    missing.expect_text("dead-letter queues in the vhost: `orders.dead`");
    run(&["peek", "zzzzzzzzzzzz"]).expect_code(64).expect_text("dead-letter queues in the vhost: `orders.dead`");
    run(&["replay", WORK, "--yes"])
        .expect_code(3)
        .expect_error("is not a dead-letter queue")
        .expect_text("--any-queue");
    run(&["list", WORK, "--any-queue"]).expect_code(0).expect_text("orders.work contains no ready messages.");
    let other = Topo::for_name(Node::shared(), "missing-vhost");
    other.run(["dlq", "list", "--vhost", "missing-vhost"]).expect_code(1).expect_error("does not exist");
    let closed = run(&["list", DEAD, "--amqp-url", "amqp://127.0.0.1:1"]).expect_code(1);
    closed.expect_error("cannot connect over AMQP").expect_text("set the address with --amqp-url");
    let wrong = Topo::new(&fixture.vhost).env("TOPO_PASSWORD", "wrong");
    wrong.run(["dlq", "list", "--vhost", "{vhost}"]).expect_code(1);
}

#[test]
fn invalid_arguments_are_refused() {
    let fixture = Fixture::new("arguments", "classic");
    for (command, flags, error) in [
        ("list", &["--since", "2h", "--until", "3h"][..], "--since is later than --until"),
        ("list", &["--since", "yesterday"], "expected a time"),
        ("list", &["--hold", "0"], "0 is not in 1..=1000000"),
        ("list", &["--hold", "1000001"], "1000001 is not in 1..=1000000"),
        ("list", &["--reason", "unknown"], "expected one of rejected, expired, maxlen, delivery_limit"),
        ("list", &["--allow", "everything"], "expected one of other-consumers"),
        ("list", &["--group-by", "color"], "expected one of source, reason"),
        ("peek", &["--limit", "0"], "0 is not in 1..=10000"),
        ("peek", &["--header", "=x"], "expected NAME or NAME=VALUE"),
        ("replay", &["--yes", "--rate", "0"], "expected a rate"),
        ("replay", &["--yes", "--rate", "fast"], "expected a rate"),
        ("replay", &["--yes", "--window", "0"], "0 is not in 1..=10000"),
        ("replay", &["--yes", "--stop-after", "101%"], "expected a percentage from 0% to 100%"),
        ("replay", &["--yes", "--to", DEAD], "is the dead-letter queue itself"),
        ("replay", &["--yes", "--to", "orders.work.retry.1.5s"], "is a delayed retry queue"),
        ("replay", &[], "no terminal is available"),
        ("drop", &["--yes"], "the dropped messages would be lost"),
        ("drop", &["--yes", "--no-backup"], "expected a selection flag, --limit or --all"),
        ("drop", &["--all", "--no-backup"], "no terminal is available"),
        ("restore", &["missing.jsonl", "--yes"], "cannot read missing.jsonl"),
    ] {
        let output = fixture.dlq(command, flags);
        let code = if command == "restore" { 65 } else { 64 };
        output.expect_code(code).expect_error(error);
    }
    fixture.topo.write("bad.jsonl", "{\"formatVersion\":1}\n");
    fixture
        .dlq("restore", &["bad.jsonl", "--yes"])
        .expect_code(65)
        .expect_text("line 1: the string \"bodyEncoding\" is missing");
    fixture.topo.write("empty.jsonl", "");
    fixture.dlq("restore", &["empty.jsonl", "--yes"]).expect_code(65).expect_error("contains no message");
}

#[test]
fn unsafe_targets_are_refused_before_the_first_message_moves() {
    let fixture = Fixture::new("targets", "classic");
    fixture.dead_letter(3);
    let base = ["--yes", "--rate", "none", "--canary", "0", "--settle", "0s"];
    let replay = |flags: &[&str]| fixture.dlq("replay", &[&base[..], flags].concat());
    replay(&[]).expect_code(3).expect_text("no-consumers: queue `orders.work` has no consumers");
    replay(&["--to", "gone"])
        .expect_code(3)
        .expect_error("3 messages cannot be replayed to queue `gone`")
        .expect_error("does not exist");
    fixture
        .amqp
        .declare_queue("full", &[("x-max-length", Argument::LongInt(2)), ("x-overflow", text("reject-publish"))])
        .unwrap();
    fixture.amqp.fill("full", 2);
    fixture.vhost.until_counted("full", 2);
    replay(&["--to", "full"]).expect_code(3).expect_error("the queue is full");
    let arguments = [("x-max-length-bytes", Argument::LongInt(9)), ("x-overflow", text("reject-publish"))];
    fixture.amqp.declare_queue("heavy", &arguments).unwrap();
    fixture.amqp.fill("heavy", 1);
    until("the size", || (fixture.vhost.queue("heavy")["message_bytes"].as_u64() >= Some(9)).then_some(()));
    replay(&["--to", "heavy"]).expect_code(3).expect_error("it rejects new messages at its limit of 9 bytes");
    let expiring = [("x-message-ttl", Argument::LongInt(60_000))];
    fixture.amqp.declare_queue("expiring", &expiring).unwrap();
    let planned = fixture.dlq("replay", &["--to", "expiring", "--dry-run"]).expect_code(0);
    planned.expect_text("messages expire after 1m in this queue");
    fixture.amqp.declare_queue("short", &[("x-max-length", Argument::LongInt(2))]).unwrap();
    let drops = replay(&["--to", "short", "--allow", "no-consumers"]).expect_code(3);
    drops.expect_text("message-drop").expect_text("drops its oldest messages when it contains more than 2");
    fixture.amqp.declare_queue("small", &[("x-max-length-bytes", Argument::LongInt(2))]).unwrap();
    let drops = replay(&["--to", "small", "--allow", "no-consumers"]).expect_code(3);
    drops.expect_text("message-drop").expect_text("drops its oldest messages when it contains more than 2 bytes");
    fixture.dlq("export", &["--out", "dead.jsonl"]).expect_code(0);
    let restore = ["dead.jsonl", "--queue", "short", "--yes"];
    fixture.dlq("restore", &restore).expect_code(3).expect_text("message-drop: queue `short` contains 0 messages");
    assert_eq!(fixture.ready("short"), 0);
    fixture.dlq("restore", &[&restore[..], &["--allow", "message-drop"]].concat()).expect_code(0);
    assert_eq!(fixture.ready("short"), 2);
    if Node::shared().at_least(3, 9) {
        fixture.amqp.declare_queue("log", &[("x-queue-type", text("stream"))]).unwrap();
        replay(&["--to", "log"]).expect_code(3).expect_error("the queue is a stream");
    }
    fixture.until_dead(3);
    // A queue that becomes full during the replay stops it.
    fixture
        .amqp
        .declare_queue("half", &[("x-max-length", Argument::LongInt(2)), ("x-overflow", text("reject-publish"))])
        .unwrap();
    let stopped = replay(&["--to", "half", "--allow", "no-consumers", "--window", "1"]).expect_code(4);
    stopped
        .expect_text("the target queue is full and rejected a message")
        .expect_text("All other messages are still in the queue.");
    let (half, dead) = (fixture.ready("half"), fixture.ready(DEAD));
    assert!((2..=3).contains(&half) && half + dead == 3, "{half} {dead}");
    // The source was deleted.
    fixture.vhost.http().delete(&fixture.vhost.path("queues", &[WORK])).expect_status(204);
    let left = fixture.dlq("replay", &[&base[..], &["--any-queue"]].concat());
    left.expect_code(3).expect_error("cannot be replayed to queue `orders.work`: the queue does not exist");
}

#[test]
fn consumers_of_the_dead_letter_queue_are_reported() {
    let fixture = Fixture::new("consumers", "classic");
    fixture.dead_letter(3);
    let held = fixture.amqp.hold(DEAD, 1);
    until("the consumer to be listed", || (fixture.vhost.listed_consumers(DEAD) == 1).then_some(()));
    fixture.dlq("list", &[]).expect_code(3).expect_text("other-consumers");
    fixture.dlq("list", &["--allow", "other-consumers"]).expect_code(0).expect_text("2 messages");
    drop(held);
}

#[test]
fn apply_and_dlq_commands_exclude_each_other() {
    let fixture = Fixture::new("exclusion", "classic");
    fixture.dead_letter(10);
    let words = fixture.words("replay", &["--yes", "--rate", "1/s", "--canary", "0", "--allow", "no-consumers"]);
    let running = fixture.topo.start(words.iter().map(String::as_str));
    until("the first message", || (fixture.ready(WORK) >= 1).then_some(()));
    let topo = Topo::new(&fixture.vhost)
        .spec("deadLetterQueues: {orders.dead: {type: classic, messageTtl: 1d}}\nqueues: {q: {type: classic}}\n");
    let address = format!("queues/{}/{DEAD}", fixture.vhost.name());
    for resolution in ["migrate", "discard"] {
        let recreate = format!("--recreate={address}={resolution}");
        let plan = topo.run(["plan", "--detailed-exitcode", recreate.as_str()]).expect_code(3);
        plan.expect_text("a `topo dlq` command is using queue orders.dead").expect_text("wait until the command ends");
    }
    // Other changes are applied.
    topo.run(["apply", "--yes", "--target", "queues/{vhost}/q"]).expect_code(0);
    running.signal("INT");
    running.wait().expect_code(4);
    let plan = topo.run(["plan", format!("--recreate={address}=migrate").as_str()]);
    plan.expect_no_text("topo dlq");

    fixture.amqp.declare_queue("topo.lock", NONE).unwrap();
    for (command, flags) in [("list", &[][..]), ("peek", &[]), ("export", &["--out", "e"]), ("replay", &["--yes"])] {
        let refused = fixture.dlq(command, flags).expect_code(6);
        refused.expect_error(&format!("vhost {} is locked", fixture.vhost.name()));
    }
    fixture.dlq("list", &["--lock-name", "other"]).expect_code(0);
}

#[test]
fn concurrent_run_is_refused() {
    let fixture = Fixture::new("concurrent", "classic");
    fixture.dead_letter(10);
    let words = fixture.words("replay", &["--yes", "--rate", "1/s", "--canary", "0", "--allow", "no-consumers"]);
    let running = fixture.topo.start(words.iter().map(String::as_str));
    until("the first message", || (fixture.ready(WORK) >= 1).then_some(()));
    for command in ["list", "peek"] {
        fixture.dlq(command, &[]).expect_code(6).expect_error("another topo dlq command is using queue `orders.dead`");
    }
    fixture.replay(&[]).expect_code(6);
    // Another replay to the same queue is refused, and leaves the exchange of the running one.
    fixture.amqp.declare_queue("other", NONE).unwrap();
    fixture.amqp.fill("other", 1);
    let other = ["dlq", "replay", "other", "--any-queue", "--to", WORK, "--vhost", "{vhost}"];
    let refused = fixture.topo.run([&other[..], super::fixture::REPLAY].concat()).expect_code(6);
    refused.expect_error("another topo dlq command is using queue `orders.work`");
    let exchange = fixture.vhost.path("exchanges", &["orders.work.topo.replay"]);
    assert_eq!(fixture.vhost.http().get(&exchange).status, 200);
    // After a kill, the lock is free at once.
    running.signal("KILL");
    running.wait();
    until("the lock to be free", || (fixture.dlq("list", &[]).code == Some(0)).then_some(()));
    fixture.replay(&[]).expect_code(0);
    assert!(fixture.ready(WORK) >= 10 && fixture.ready(DEAD) == 0);
}

#[test]
fn interrupted_replay_reports_and_continues() {
    let fixture = Fixture::new("interrupted", "classic");
    fixture.dead_letter(50);
    // The complete replay takes 12 s, so the signal arrives before its end also on a busy machine.
    let words = fixture.words("replay", &["--yes", "--rate", "4/s", "--canary", "0", "--allow", "no-consumers"]);
    let running = fixture.topo.start(words.iter().map(String::as_str));
    until("the first messages", || (fixture.ready(WORK) >= 2).then_some(()));
    running.interrupt("INT");
    let output = running.wait().expect_code(4);
    output.expect_text("Interrupted:").expect_text("To continue, run the same command again.");
    let (work, dead) = (fixture.ready(WORK), fixture.ready(DEAD));
    assert_eq!(work + dead, 50);
    assert!(dead > 0);
    fixture.replay(&[]).expect_code(0);
    assert_eq!((fixture.ready(WORK), fixture.ready(DEAD)), (50, 0));
}

#[test]
fn missing_permissions_are_reported() {
    let fixture = Fixture::new("rights", "classic");
    fixture.dead_letter(3);
    // A user who cannot read the listeners must specify an AMQP port other than the default.
    let amqp_url = format!("amqp://127.0.0.1:{}", fixture.vhost.node().amqp_port());
    let list = ["dlq", "list", DEAD, "--vhost", "{vhost}", "--amqp-url", amqp_url.as_str()];
    // May not read the dead-letter queue.
    let reader = Node::shared().user("management").may(&fixture.vhost, ".*", ".*", "^nothing$");
    Topo::new(&fixture.vhost).user(&reader).run(list).expect_code(1).expect_error("orders.dead");
    // May not configure the lock.
    let other = Node::shared().user("management").may(&fixture.vhost, "^nothing$", ".*", ".*");
    Topo::new(&fixture.vhost).user(&other).run(list).expect_code(1).expect_error("orders.dead.topo.run");
    // May configure only the lock: the replay goes through the default exchange.
    let limited = Node::shared().user("management").may(&fixture.vhost, r"^orders\.dead\.topo\.run$", ".*", ".*");
    let flags = [&["dlq", "replay", DEAD, "--vhost", "{vhost}", "--amqp-url", &amqp_url], super::fixture::REPLAY];
    let replayed = Topo::new(&fixture.vhost).user(&limited).run(flags.concat());
    let replayed = replayed.expect_code(0).expect_text("3 messages replayed.");
    assert!(replayed.stderr.contains("have the queue name as their routing key"), "{replayed}");
    assert_eq!(fixture.drain(WORK)[0].routing_key, WORK);
}

#[test]
fn messages_of_other_users_stay() {
    let fixture = Fixture::new("user-id", "classic");
    let publisher = Node::shared().user("").may(&fixture.vhost, ".*", ".*", ".*");
    let amqp = publisher.amqp(&fixture.vhost);
    let properties = AMQPProperties::default().with_user_id(publisher.name.as_str().into());
    amqp.publish_with(EXCHANGE, "order.paid", "0", properties);
    fixture.publish(2);
    fixture.fail(WORK, 3);
    fixture.until_dead(3);
    let replaying = Node::shared().user("administrator").may_everything(&fixture.vhost);
    let topo = Topo::new(&fixture.vhost).user(&replaying);
    let words = fixture.words("replay", super::fixture::REPLAY);
    let output = topo.run(words.iter().map(String::as_str)).expect_code(0);
    output
        .expect_text("2 messages replayed.")
        .expect_text(&format!("`user_id` names a different user (`{}`)", publisher.name));
    fixture.until_dead(1);
    let words = fixture.words("export", &["--out", "other.jsonl"]);
    topo.run(words.iter().map(String::as_str)).expect_code(0);
    let words = fixture.words("restore", &["other.jsonl", "--yes"]);
    let refused = topo.run(words.iter().map(String::as_str)).expect_code(3);
    refused.expect_error(&format!("`user_id` names a different user: `{}`", publisher.name));
    fixture.until_dead(1);
    assert!(header_names(&fixture.drain(DEAD)[0]).contains(&"x-death".to_owned()));
}

#[test]
fn streams_can_be_inspected_but_not_changed() {
    if !Node::shared().at_least(3, 9) {
        return;
    }
    let fixture = Fixture::with("stream", "classic", "", "");
    fixture.amqp.declare_queue("log", &[("x-queue-type", text("stream"))]).unwrap();
    fixture.amqp.fill("log", 50);
    let run = |words: &[&str]| fixture.topo.run([&["dlq"], words, &["--vhost", "{vhost}", "--any-queue"]].concat());
    until("all messages", || {
        let listed = run(&["list", "log", "--format", "json"]).expect_code(0).json();
        (listed["inspected"] == 50).then_some(())
    });
    run(&["peek", "log", "--position", "7"]).expect_code(0).expect_text("message 7 ");
    run(&["replay", "log", "--yes"])
        .expect_code(3)
        .expect_error("is a stream; messages cannot be removed from a stream");
    run(&["drop", "log", "--yes", "--all", "--no-backup"]).expect_code(3).expect_error("is a stream");
}
