//! Tests properties of the shovel transport.

use topo::broker::transport::{Fault, Leftover, Move, State};

use serde_json::json;

use super::fixture::{By, Fixture, TYPES, fill, numbers, shovel_transport, shovels, take};
use crate::support::{Argument, Node, Options, Topo, block_on, until};

#[test]
fn missing_plugin_is_reported() {
    let node = Node::start(Options::default().without_plugin("rabbitmq_shovel"));
    let vhost = node.vhost("none");
    let fixture = Fixture::create(&vhost, "", TYPES[0]);
    assert_eq!(block_on(shovel_transport(&vhost).check()), Err(Fault::NoShovels));
    assert_eq!(fixture.refusal(By::Shovel), Fault::NoShovels);
    // topo itself requires no plugin.
    fill(&fixture.amqp, &fixture.old, 0..10, 0);
    assert_eq!(fixture.move_all(By::Amqp, 10).moved, Some(10));
    // A spec with a shovel is blocked before the first change.
    let shovel = "{source: {queue: a}, destination: {queue: b}}";
    let topo = Topo::new(&vhost).spec(&format!("queues: {{a: {{type: classic}}}}\nshovels: {{s: {shovel}}}\n"));
    let blocked = topo.run(["apply", "-y"]).expect_code(3).expect_text("the rabbitmq_shovel plugin is not enabled");
    blocked.expect_text("rabbitmq-plugins enable rabbitmq_shovel");
    assert!(!vhost.names("queues").contains(&"a".to_owned()));
    topo.rewrite("shovels: {}\n");
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0);
}

/// The broker accepts the definition although the plugin is stopped.
#[test]
fn stopped_plugin_is_reported() {
    let node = Node::start(Options::default());
    let vhost = node.vhost("stopped");
    let fixture = Fixture::create(&vhost, "", TYPES[0]);
    fill(&fixture.amqp, &fixture.old, 0..10, 0);
    node.ctl(["eval", "exit(whereis(rabbit_shovel_dyn_worker_sup_sup), kill)."]);
    assert_eq!(fixture.refusal(By::Shovel), Fault::NotStarted);
    assert!(shovels(&vhost).is_empty());
    assert_eq!(fixture.move_all(By::Amqp, 10).moved, Some(10));
}

#[test]
fn shovel_of_a_killed_run_is_found_and_removed() {
    let vhost = Node::shared().vhost("leftover");
    let fixture = Fixture::create(&vhost, "a/b ", TYPES[0]);
    let transport = shovel_transport(&vhost);
    assert_eq!(block_on(transport.leftovers()).unwrap(), []);
    // The shovel survives its run.
    drop(fixture.start(By::Shovel));
    let name = "topo.move.a/b old".to_owned();
    let leftover = Leftover { name: name.clone(), source: fixture.old.as_str().into() };
    assert_eq!(block_on(transport.leftovers()).unwrap(), [leftover]);
    fill(&fixture.amqp, &fixture.old, 0..10, 0);
    until("all of them", || (fixture.amqp.ready(&fixture.new) == 10).then_some(()));
    // A new run of the same migration replaces the shovel.
    let moving = fixture.start(By::Shovel);
    assert_eq!(shovels(&vhost), [name.as_str()]);
    block_on(moving.stop()).unwrap();
    assert!(shovels(&vhost).is_empty());
    let status = vhost.http().get("/api/shovels").expect_status(200);
    assert!(!status.to_string().contains("leftover"), "{status}");
    block_on(transport.remove(&name)).unwrap();
    fill(&fixture.amqp, &fixture.old, 10..20, 0);
    assert!(numbers(&take(&fixture.amqp, &fixture.old, 10)).into_iter().eq(10..20), "no consumer takes them");
    assert!(numbers(&take(&fixture.amqp, &fixture.new, 10)).into_iter().eq(0..10));
}

#[test]
fn removed_shovel_does_not_redeclare_its_queue() {
    let vhost = Node::shared().vhost("bare");
    for types in [TYPES[0], TYPES[2]] {
        let fixture = Fixture::create(&vhost, &format!("{types:?} "), types);
        fill(&fixture.amqp, &fixture.old, 0..2000, 0);
        block_on(fixture.start(By::Shovel).stop()).unwrap();
        vhost.http().delete(&vhost.path("queues", &[&fixture.old])).expect_status(204);
        // A remaining shovel would reconnect within its reconnect delay of 1 s.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(3);
        while std::time::Instant::now() < until {
            assert!(vhost.queue(&fixture.old).is_null(), "{types:?}");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

#[test]
fn shovel_with_a_deleted_target_keeps_the_messages() {
    let vhost = Node::shared().vhost("ended");
    let fixture = Fixture::create(&vhost, "", TYPES[0]);
    let moving = fixture.start(By::Shovel);
    vhost.http().delete(&vhost.path("exchanges", &[&fixture.tap])).expect_status(204);
    fill(&fixture.amqp, &fixture.old, 0..5, 0);
    // The shovel may report `running` while its channel is closed (3.10.8), or restart repeatedly (4.0.5).
    assert_eq!(block_on(moving.stop()).unwrap().state, State::Stopped);
    assert!(numbers(&take(&fixture.amqp, &fixture.old, 5)).into_iter().eq(0..5));
}

/// The broker kills a shovel that has not connected yet. From 3.13 on, the status of the shovel remains (fixed after
/// 4.3.5).
#[test]
fn shovel_removed_during_its_start_is_gone() {
    let vhost = Node::shared().vhost("starting");
    let fixture = Fixture::create(&vhost, "", TYPES[0]);
    // Accepts the connection and never responds.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let source = format!("amqp://{}/{}", silent.local_addr().unwrap(), vhost.name());
    let value = json!({"value": {
        "src-protocol": "amqp091", "src-uri": source, "src-queue": fixture.old,
        "dest-protocol": "amqp091", "dest-uri": format!("amqp:///{}", vhost.name()), "dest-exchange": fixture.tap,
    }});
    let name = "topo.move.old";
    assert!(vhost.http().put(&vhost.path("parameters/shovel", &[name]), &value).is_success());
    let state = || {
        let listed = vhost.http().get(&vhost.path("shovels", &[])).expect_status(200);
        listed.as_array().unwrap().iter().find(|one| one["name"] == name).map(|one| one["state"].clone())
    };
    until("it starts", || (state() == Some("starting".into())).then_some(()));
    block_on(shovel_transport(&vhost).remove(name)).unwrap();
    let node = Node::shared();
    let expected = node.at_least(3, 13).then(|| "starting".into());
    assert!(state() == expected || node.at_least(4, 3) && state().is_none(), "{:?}", state());
    assert!(shovels(&vhost).is_empty());
    // topo does not use the stale status for the next shovel.
    fill(&fixture.amqp, &fixture.old, 0..10, 0);
    fixture.move_all(By::Shovel, 10);
    assert_eq!(state(), None);
}

#[test]
fn shovel_has_a_higher_priority_than_consumers() {
    let node = Node::shared();
    let vhost = node.vhost("priority");
    let fixture = Fixture::create(&vhost, "", TYPES[0]);
    let Move::Shovel(_) = fixture.start(By::Shovel) else { panic!("by shovel") };
    let consumers = until("its consumer", || {
        let consumers = vhost.http().list(&vhost.path("consumers", &[]));
        (!consumers.as_array().unwrap().is_empty()).then_some(consumers)
    });
    let expected = if node.at_least(3, 9) { Argument::LongLongInt(1000) } else { Argument::Void };
    let priority = consumers[0]["arguments"]["x-priority"].as_i64();
    assert_eq!(priority.map_or(Argument::Void, Argument::LongLongInt), expected);
    assert_eq!(consumers[0]["prefetch_count"], 1000);
    block_on(shovel_transport(&vhost).remove("topo.move.old")).unwrap();
}
