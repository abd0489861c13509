//! Interrupted and killed runs of `topo test --live`, and `--clean`. These tests use their own node, because `--clean`
//! would delete the vhosts of other tests.

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::{SMALL, SMALL_CASES};
use crate::support::random::cases;
use crate::support::{Node, Options, Random, Topo, Vhost, seed, until};

/// Returns the scratch vhosts of the node.
fn scratch_vhosts(vhost: &Vhost<'_>) -> Vec<String> {
    let vhosts = vhost.http().get("/api/vhosts").expect_status(200);
    let names = vhosts.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with("topo-test-")).collect()
}

fn topo(vhost: &Vhost<'_>) -> Topo {
    Topo::new(vhost).spec(SMALL).file("topology.test.yaml", SMALL_CASES)
}

/// The case takes 5 s.
const SLOW: [&str; 4] = ["test", "--live", "--time-scale", "4"];

#[test]
fn signals_and_clean_delete_scratch_vhosts() {
    let node = Node::start(Options::default());
    let vhost = node.vhost("stopped");
    let topo = topo(&vhost);
    for signal in ["INT", "TERM"] {
        let running = topo.start(SLOW);
        until("a scratch vhost exists", || scratch_vhosts(&vhost).pop());
        running.signal(signal);
        running.wait().expect_code(130).expect_error("interrupted");
        assert_eq!(scratch_vhosts(&vhost), [""; 0], "{signal}");
    }
    // `--clean` deletes only the vhosts of killed runs.
    let others = ["topo-test-orders", "topo-test-0123abcd"];
    for other in others {
        assert!(vhost.http().put(&format!("/api/vhosts/{other}"), &json!({})).is_success());
    }
    let mut random = Random::new(seed() ^ 9);
    let kills = cases(6, 50);
    let mut left = 0;
    for _ in 0..kills {
        let mut running = topo.start(SLOW);
        sleep(Duration::from_millis(random.below(2_500) as u64));
        assert!(!running.is_over(), "{}", running.printed());
        running.signal("KILL");
        running.wait();
        // The broker can still create a vhost that a killed run requested.
        sleep(Duration::from_millis(300));
        let found = scratch_vhosts(&vhost).len() - others.len();
        left += usize::from(found > 0);
        topo.run(["test", "--clean"]).expect_code(0).expect_text("no scratch vhosts are at least 1h old");
        assert_eq!(
            scratch_vhosts(&vhost).len(),
            found + others.len(),
            "`--clean` deleted a vhost younger than an hour"
        );
        topo.run(["test", "--clean", "--older-than", "0s"]).expect_code(0);
        let mut rest = scratch_vhosts(&vhost);
        rest.sort();
        assert_eq!(rest, ["topo-test-0123abcd", "topo-test-orders"]);
    }
    println!("{kills} runs were killed; {left} of them left a vhost behind");
    assert!(left > 0, "no run was killed after it had created a vhost");
}

#[test]
fn kept_vhost_contains_the_topology() {
    let node = Node::start(Options::default());
    let vhost = node.vhost("kept");
    topo(&vhost).run(["test", "--live", "--keep"]).expect_code(0).expect_text("kept scratch vhosts: topo-test-");
    let kept = scratch_vhosts(&vhost);
    assert_eq!(kept.len(), 1);
    let queues = vhost.http().get(&format!("/api/queues/{}", kept[0])).expect_status(200);
    assert_eq!(queues.as_array().unwrap().len(), 2, "{queues}");
}

#[test]
fn failed_broker_reports_remaining_vhosts() {
    let node = Node::start(Options::default());
    let vhost = node.vhost("dies");
    let topo = topo(&vhost);
    let running = topo.start(SLOW);
    until("a scratch vhost exists", || scratch_vhosts(&vhost).pop());
    let names = scratch_vhosts(&vhost);
    node.kill();
    let output = running.wait().expect_code(4).expect_text("could not delete vhost");
    output.expect_text(&names[0]).expect_text("topo test --clean --older-than 0s");
}
