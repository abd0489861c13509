//! Tests a plan during a migration by another process.

use super::fixture::{Fixture, TTL};
use super::traffic::Publisher;
use crate::support::{Gate, Topo, deletes, until};

#[test]
fn plan_during_a_migration_names_the_lock_holder() {
    let (fixture, proxy) = Fixture::new("under-way", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(20);
    let gate = Gate::default();
    proxy.add(deletes().path("/q.topo.drained"), gate.fault());
    let words = Fixture::apply("amqp");
    let running = fixture.topo.start(words.iter().map(String::as_str));
    let other = Topo::new(&fixture.vhost).spec(&fixture.conversion.spec());
    until("the end of the migration", || (proxy.count(&deletes().path("/q.topo.drained")) > 0).then_some(()));
    for format in ["text", "markdown", "github", "json"] {
        let plan = other.run(["plan", "--recreate", "queues/{vhost}/q=migrate", "--format", format]);
        let plan = plan.expect_text("a migration of queue q is in progress: ");
        let plan =
            plan.expect_text(&format!("pid {}, since ", running.pid())).expect_text("Wait until that apply ends");
        plan.expect_no_text("was interrupted").expect_no_text("--abort");
    }
    let holder = format!("pid {}, since ", running.pid());
    let short = other.run(["plan", "--recreate", "queues/{vhost}/q=migrate", "--short"]);
    let line = short.stdout.lines().find(|line| line.contains("migrating")).unwrap_or_default().to_owned();
    assert!(line.contains("/q  lock: ") && line.contains(&holder), "{line}");
    let export = other.run(["export", "--vhost", "{vhost}"]).expect_code(0);
    let export = export.expect_text("a migration of queue q is in progress: ").expect_text(&holder);
    let export = export.expect_text("Wait until that apply ends");
    let errors = &export.stderr;
    assert!(!["was interrupted", "--abort", "would resume"].iter().any(|words| errors.contains(words)), "{errors}");
    gate.open();
    fixture.expect_migrated(&running.wait().expect_code(0));
    other.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}
