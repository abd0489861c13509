//! Plans a spec against a broker and applies the plan, with only the library.
//!
//! ```text
//! cargo run --example plan_and_apply -- topology.yaml http://localhost:15672 backup.json
//! ```
//!
//! The last argument is the backup file for the objects that the plan deletes, changes or recreates. `TOPO_USERNAME`
//! and `TOPO_PASSWORD` set the credentials; the default of both is `guest`.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use topo::apply::{self, Backup, BackupError, Interrupt, Outcome, Progress, RunEvent, RunOptions, RunRequest, Status};
use topo::broker::{Access, BaseUrl, ConnectionOptions, Process};
use topo::expand::expand;
use topo::plan::{Allowance, Desired, Options, Plan, blockers_of};
use topo::render::{definitions, report_text};
use topo::spec::{SourceFile, Variables, parse};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, url, backup] = &arguments[..] else { return Err("usage: plan_and_apply SPEC URL BACKUP".into()) };
    let spec = SourceFile { name: path.clone(), text: fs::read_to_string(path)? };
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| "guest".to_owned());
    let url = BaseUrl::parse(url)?.url;
    let connection = ConnectionOptions::new(url, variable("TOPO_USERNAME"), variable("TOPO_PASSWORD").into());
    // An apply that is waiting for the lock shows both names.
    let access = Access::new(connection, Process::new(variable("USER"), "plan_and_apply"))?;

    let desired = desired(spec, &access).await?;
    let plan = apply::plan(&access, &desired, &Options::default()).await?;
    for step in plan.parts().flat_map(|part| &part.steps) {
        println!("planned: {}", report_text::action(&step.action));
    }
    if plan.is_empty() {
        println!("nothing to do");
        return Ok(());
    }
    let outcome = apply_plan(&access, &desired, &plan, &[], Path::new(backup)).await?;
    println!("{}", outcome.status().as_str());
    if outcome.status() == Status::Applied { Ok(()) } else { Err("the plan was not applied completely".into()) }
}

/// Parses a spec, and expands the cluster and then each vhost for the broker's version and features.
pub(crate) async fn desired(spec: SourceFile, access: &Access) -> Result<Vec<Arc<Desired>>, Box<dyn Error>> {
    let specs = parse(&[spec], &Variables::new())?;
    let survey = access.broker.survey().await?;
    let mut desired = Vec::new();
    for spec in specs.cluster.iter().chain(&specs.vhosts) {
        let profile = survey.profile(&spec.vhost.value);
        desired.push(Arc::new(expand(spec, &profile)?.into_desired()));
    }
    Ok(desired)
}

/// Applies a plan. As on the command line, hazards that are not allowed block the plan.
pub(crate) async fn apply_plan(
    access: &Access,
    desired: &[Arc<Desired>],
    plan: &Plan,
    allowed: &[Allowance],
    backup: &Path,
) -> Result<Outcome, Box<dyn Error>> {
    let blockers = blockers_of(plan, allowed);
    if !blockers.is_empty() {
        return Err(format!("the plan is blocked by {blockers}").into());
    }
    let write = |objects: &Backup| write_backup(objects, backup);
    let request = RunRequest {
        access,
        desired,
        reviewed: plan,
        allowed,
        backup: Some(&write),
        interrupt: &Interrupt::default(),
        options: &RunOptions::default(),
    };
    Ok(apply::run(&request, &show).await?)
}

/// Writes the objects that the plan deletes, changes or recreates to a definitions file.
fn write_backup(backup: &Backup, path: &Path) -> Result<(), BackupError> {
    let text =
        definitions::definitions(&backup.objects, &backup.topic_permissions, &backup.secret.lists(), &backup.version);
    let error = |error: std::io::Error| BackupError { file: path.display().to_string(), reason: error.to_string() };
    fs::write(path, text).map_err(error)
}

/// Prints the progress. Steps of several vhosts can be interleaved.
#[expect(clippy::wildcard_enum_match_arm, reason = "this program prints only some events")]
fn show(event: RunEvent<'_>) {
    match event {
        RunEvent::LockHeld { vhost, holder } => println!("waiting for the lock of vhost {vhost}, held by {holder}"),
        RunEvent::Step(Progress::Done(step)) => println!("done: {}", report_text::action(&step.action)),
        RunEvent::Step(Progress::Failed(step, error)) => {
            println!("failed: {}: {error}", report_text::action(&step.action));
        }
        RunEvent::Verifying => println!("verifying"),
        _ => {}
    }
}
