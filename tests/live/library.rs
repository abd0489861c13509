//! Tests that the library example plans and applies without the command line, with the guards of `topo apply`.

use std::path::Path;
use std::sync::Arc;

use topo::apply::{self, Interrupt, Outcome, RunError, RunOptions, RunRequest, Status};
use topo::broker::{Access, Process};
use topo::plan::{Allowance, Allowances, Desired, Options, Plan};
use topo::spec::SourceFile;

use super::transport::fixture::http_options;
use crate::support::{Node, Vhost, block_on, temp_dir};

#[path = "../../examples/library/plan_and_apply.rs"]
#[allow(dead_code, reason = "its main reads the environment")]
mod plan_and_apply;

fn access(node: &Node) -> Access {
    Access::new(http_options(node, "guest", "guest"), Process::new("tester", "here")).unwrap()
}

/// Returns a desired topology with one queue of this type, bound to one exchange.
async fn desired(access: &Access, vhost: &Vhost<'_>, kind: &str) -> Vec<Arc<Desired>> {
    let text = format!(
        "version: 1\nvhost: '{}'\nexchanges: {{orders: {{type: topic}}}}\nqueues:\n  invoices:\n    type: {kind}\n    \
         bindings: [{{exchange: orders, routingKey: '#'}}]\n    onConflict: discard\n",
        vhost.name()
    );
    plan_and_apply::desired(SourceFile { name: "topology.yaml".to_owned(), text }, access).await.unwrap()
}

async fn plan(access: &Access, desired: &[Arc<Desired>]) -> Plan {
    apply::plan(access, desired, &Options::default()).await.unwrap()
}

async fn apply_spec(
    access: &Access,
    vhost: &Vhost<'_>,
    kind: &str,
    allowed: &[Allowance],
    backup: &Path,
) -> Result<Outcome, String> {
    let desired = desired(access, vhost, kind).await;
    let plan = plan(access, &desired).await;
    plan_and_apply::apply_plan(access, &desired, &plan, allowed, backup).await.map_err(|error| error.to_string())
}

#[test]
fn library_plans_and_applies() {
    let node = Node::shared();
    let vhost = node.vhost("library");
    let access = access(node);
    let folder = temp_dir::folder();
    let backup = folder.path().join("backup.json");
    block_on(async {
        let outcome = apply_spec(&access, &vhost, "classic", &[], &backup).await.unwrap();
        assert!(!backup.exists(), "nothing was deleted, changed or recreated");
        assert_eq!((outcome.status(), outcome.left), (Status::Applied, Ok(Vec::new())));
        let done: Vec<String> =
            outcome.reports[0].done.iter().map(|done| done.step.address.as_str().to_owned()).collect();
        assert_eq!(done.len(), outcome.plan.plan().step_count(), "{done:?}");
        let desired = desired(&access, &vhost, "classic").await;
        assert!(plan(&access, &desired).await.is_empty());
    });
}

#[test]
fn library_refuses_a_hazard_until_it_is_allowed() {
    let node = Node::shared();
    let vhost = node.vhost("library");
    let access = access(node);
    let folder = temp_dir::folder();
    let backup = folder.path().join("backup.json");
    block_on(async {
        apply_spec(&access, &vhost, "classic", &[], &backup).await.unwrap();
        let refused = apply_spec(&access, &vhost, "quorum", &[], &backup).await.unwrap_err();
        assert!(refused.starts_with("the plan is blocked by "), "{refused}");
        let allowed: Allowances = "message-loss,routing-gap,consumer-disruption".parse().unwrap();
        let outcome = apply_spec(&access, &vhost, "quorum", &allowed.0, &backup).await.unwrap();
        assert_eq!(outcome.status(), Status::Applied, "{outcome:?}");
        let saved: serde_json::Value = serde_json::from_slice(&std::fs::read(&backup).unwrap()).unwrap();
        assert_eq!(saved["queues"][0]["name"], "invoices");
    });
}

#[test]
fn library_refuses_a_plan_that_is_stale() {
    let node = Node::shared();
    let vhost = node.vhost("library");
    let access = access(node);
    block_on(async {
        let (first, second) = (desired(&access, &vhost, "classic").await, desired(&access, &vhost, "quorum").await);
        let reviewed = plan(&access, &first).await;
        let request = RunRequest {
            access: &access,
            desired: &second,
            reviewed: &reviewed,
            allowed: &[],
            backup: None,
            interrupt: &Interrupt::default(),
            options: &RunOptions::default(),
        };
        let failure = apply::run(&request, &|_| {}).await.unwrap_err();
        assert_eq!(failure.to_string(), "the broker no longer matches the plan; nothing was changed");
        assert!(matches!(&failure.error, RunError::Stale(news) if !news.is_empty()), "{failure:?}");
        assert!(failure.created.is_empty());
        // The lock was released.
        let left = plan(&access, &first).await;
        assert_eq!(left.fingerprint, reviewed.fingerprint);
    });
}
