//! `topo apply`: plans the changes, asks for confirmation, runs the plan and prints the report.

use super::arguments::{Global, PlanFormat, ReportFormat};
use super::failure::{Exit, Failure};
use super::outcome::{self, check_expected, check_fresh};
use super::plan::{self, Layout};
use super::plan_arguments::ApplyArguments;
use super::planning::Planned;
use super::progress::Progress;
use super::run_display::RunDisplay;
use super::sources::Sources;
use super::{backup, connection, files, findings, input, interaction, output, planning, rights, secrets};
use crate::apply::{self, Backup, Interrupt, Outcome, Report, RunEvent, RunOptions, RunRequest, Status, StoppedShovel};
use crate::broker::Access;
use crate::model::names::DEFAULT_VHOST;
use crate::model::printable::clean_json;
use crate::model::{Address, QueueName, VhostName};
use crate::plan::{Allowance, Desired, Options, Plan, blockers_of};
use crate::render::shell::quote;
use crate::render::style::clean;
use crate::render::{report_json, report_text, shell};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

/// The desired topologies to apply, and the plan that the user reviewed.
struct Intent {
    desired: Vec<Arc<Desired>>,
    reviewed: Plan,
    specs: String,
    next_command: String,
    /// The failure for findings at or above `--fail-on`; `None` if there are no such findings. Also `None` for a
    /// rollback, and for a saved plan, whose findings have already been reviewed.
    lint_failure: Option<Failure>,
}

pub(super) async fn run(arguments: &ApplyArguments, global: &Global) -> Result<Exit, Failure> {
    connection::refuse_password(&arguments.connection)?;
    let saved = arguments.plan.as_deref().map(input::saved_plan).transpose()?;
    let can_continue = arguments.yes || saved.is_some() || arguments.dry_run || interaction::can_confirm();
    if !can_continue {
        return Err(no_terminal(arguments));
    }
    let progress = Progress::new(global);
    // A rollback requires no spec, but an environment in the specs can select the broker.
    let needs_specs = saved.is_none() && (arguments.abort.is_empty() || arguments.spec.env.is_some());
    let sources = match needs_specs {
        true => Some(Sources::read(&arguments.spec, "topo apply")?),
        false => None,
    };
    let environment = sources.as_ref().and_then(|sources| sources.environment.as_ref());
    let intervals = arguments.planning.intervals.intervals();
    let mut access = connection::connect_to(&arguments.connection, environment, intervals)?;
    access.lock_queue = QueueName::new(arguments.lock_name.as_str());
    let allowed = planning::allowances(&arguments.planning.allow);
    let mut intent = intent(arguments, saved, sources, &access, global).await?;
    let missing_rights =
        rights::add_missing(&access, &mut intent.reviewed, &arguments.lock_name, &arguments.lock_vhost).await;
    secrets::report_plain_connection(&access.broker, &mut intent.reviewed);
    let all = arguments.planning.show.is_some();
    if arguments.format == ReportFormat::Text {
        let layout = Layout { all, ..Layout::of(&intent.specs, &allowed, global) };
        output::print(&plan::render(&intent.reviewed, PlanFormat::Text, &layout))?;
    }
    planning::report_allowances(&intent.reviewed, &allowed);
    // This check runs after the plan is printed, because two fingerprints alone do not show the difference.
    check_expected(arguments, &intent.reviewed)?;
    let open = blockers_of(&intent.reviewed, &allowed);
    if !open.is_empty() {
        let command = shell::with_allowances(&intent.next_command, &open);
        let mut failure = planning::blocked_failure(&open);
        if !open.hazards.is_empty() {
            failure = failure.hint(format!("to allow the hazards and apply: {command}"));
        }
        if arguments.format == ReportFormat::Json {
            print_json(&[], Some(&[]), &[], (&intent.reviewed, Status::Blocked.as_str()))?;
        }
        return Err(failure);
    }
    let unset = if arguments.dry_run { Ok(()) } else { secrets::check_set(&access.broker, &intent.reviewed) };
    if let Err(failure) = unset {
        if arguments.format == ReportFormat::Json {
            print_json(&[], Some(&[]), &[], (&intent.reviewed, Status::Failed.as_str()))?;
        }
        return Err(failure);
    }
    if let Some(failure) = intent.lint_failure.take() {
        if arguments.format == ReportFormat::Json {
            print_json(&[], Some(&[]), &[], (&intent.reviewed, Status::Failed.as_str()))?;
        }
        return Err(failure);
    }
    if intent.reviewed.step_count() == 0 || arguments.dry_run {
        if arguments.format == ReportFormat::Json {
            let result = if intent.reviewed.step_count() == 0 { "nothing to do" } else { "dry run" };
            print_json(&[], Some(&[]), &[], (&intent.reviewed, result))?;
        }
        return Ok(Exit::Done);
    }
    if let Some(failure) = rights::refusal(missing_rights).filter(|_| !arguments.ignore_missing_rights) {
        if arguments.format == ReportFormat::Json {
            print_json(&[], Some(&[]), &[], (&intent.reviewed, Status::Failed.as_str()))?;
        }
        return Err(failure);
    }
    if !arguments.yes && arguments.plan.is_none() && !interaction::confirm_plan(&intent.reviewed)? {
        return Err(Failure::failed("not confirmed; nothing was changed"));
    }
    let interrupt = Interrupt::default();
    tokio::select! {
        ended = run_plan(arguments, &access, &intent, &allowed, &interrupt, progress) => ended,
        () = interaction::second_signal(interrupt.clone()) => {
            Err(Failure::failed("stopped immediately: steps in progress may or may not have completed, and no other steps were started")
                .exit(Exit::Partial)
                .because("the lock was not released; it expires within a minute")
                .hint(format!("to see the remaining changes and resume: {}", intent.next_command)))
        }
    }
}

/// Plans a rollback, creates a new plan, or recomputes the saved plan. Refuses a stale saved plan.
async fn intent(
    arguments: &ApplyArguments,
    saved: Option<Plan>,
    sources: Option<Sources>,
    access: &Access,
    global: &Global,
) -> Result<Intent, Failure> {
    let progress = &Progress::new(global);
    if !arguments.abort.is_empty() {
        return rollback_intent(arguments, access, progress).await;
    }
    let Some(saved) = saved else {
        let sources = sources.map_or_else(|| Sources::read(&arguments.spec, "topo apply"), Ok)?;
        let options = planning::options(&arguments.planning, sources.environment.as_ref())?;
        let Planned { loaded, plan: reviewed, desired, found } =
            planning::read_and_plan(access, sources, &options, &arguments.lint, progress).await?;
        planning::check_addresses(&reviewed)?;
        let lint_findings = findings::for_plan(found, &reviewed, &arguments.lint);
        lint_findings.eprint(&loaded, global);
        let (next_command, lint_failure) = (next_command(arguments, &loaded.specs), lint_findings.lint_failure());
        return Ok(Intent { desired, reviewed, specs: loaded.specs, next_command, lint_failure });
    };
    let (plan_url, broker_url) = (saved.target.url.as_str(), access.broker.shown_url());
    if plan_url != broker_url && !arguments.allow_other_broker {
        let message = format!("the plan was made for {plan_url}, not for {broker_url}; nothing was changed");
        return Err(Failure::usage(message)
            .hint(format!("apply the plan to that broker: --url {}", quote(plan_url)))
            .hint("if both URLs reach the same broker, for example through a tunnel: --allow-other-broker"));
    }
    let desired: Vec<Arc<Desired>> = saved.parts().map(|part| Arc::clone(&part.desired)).collect();
    let now = planning::plan(access, &desired, &saved.options, progress).await?;
    check_fresh(&saved, &now)?;
    let path = arguments.plan.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    let connection = connection::flags(&arguments.connection) + &arguments.planning.intervals.flags();
    let other = if arguments.allow_other_broker { " --allow-other-broker" } else { "" };
    let next_command = format!(
        "topo apply --plan {}{connection}{other}{}",
        files::path_argument(Path::new(&path)),
        apply_flags(arguments)
    );
    Ok(Intent { desired, reviewed: now, specs: path, next_command, lint_failure: None })
}

/// Plans the rollback of migrations. A rollback requires no spec, because the broker stores the required information.
async fn rollback_intent(arguments: &ApplyArguments, access: &Access, progress: &Progress) -> Result<Intent, Failure> {
    let mut vhosts: Vec<VhostName> = Vec::new();
    for address in &arguments.abort {
        let vhost = address.vhost();
        if !vhosts.contains(&vhost) {
            vhosts.push(vhost);
        }
    }
    let desired: Vec<Arc<Desired>> = vhosts.into_iter().map(Desired::nothing).map(Arc::new).collect();
    let options = Options { abort: arguments.abort.iter().cloned().collect(), ..Options::default() };
    let reviewed = planning::plan(access, &desired, &options, progress).await?;
    let next_command = abort_command(arguments);
    Ok(Intent {
        desired,
        reviewed,
        specs: "none: a migration will be rolled back".to_owned(),
        next_command,
        lint_failure: None,
    })
}

/// Returns the command that rolls back the migrations that `--abort` specifies.
fn abort_command(arguments: &ApplyArguments) -> String {
    let flags: String = arguments.abort.iter().map(|address| format!(" --abort {}", quote(address.as_str()))).collect();
    let connection = connection::flags(&arguments.connection) + &arguments.planning.intervals.flags();
    let environment = arguments.spec.env.as_ref().map(|name| format!(" --env {}", quote(name))).unwrap_or_default();
    format!("topo apply{flags}{environment}{connection}{}", apply_flags(arguments))
}

/// Returns the failure for a run without a terminal, `--yes` or a saved plan.
fn no_terminal(arguments: &ApplyArguments) -> Failure {
    let failure = Failure::usage("no terminal is available to ask for confirmation");
    if arguments.abort.is_empty() {
        return failure
            .hint("apply without confirmation: topo apply --yes")
            .hint("or apply a reviewed plan: topo plan --out plan.json, then topo apply --plan plan.json");
    }
    failure.hint(format!("apply without confirmation: {} --yes", abort_command(arguments)))
}

/// Returns the flags of `topo apply` that suggested commands must repeat.
fn apply_flags(arguments: &ApplyArguments) -> String {
    let rights = if arguments.ignore_missing_rights { " --ignore-missing-rights" } else { "" };
    let vhost = match arguments.lock_vhost.as_str() {
        DEFAULT_VHOST => String::new(),
        other => format!(" --lock-vhost {}", quote(other)),
    };
    format!("{}{vhost}{rights}", connection::lock_flag(&arguments.lock_name))
}

/// Returns the command that repeats or resumes this run.
fn next_command(arguments: &ApplyArguments, specs: &str) -> String {
    let (spec, planning) = (input::flags(&arguments.spec, specs), planning::flags(&arguments.planning));
    let (connection, lint) = (connection::flags(&arguments.connection), findings::flags(&arguments.lint));
    format!("topo apply{spec}{connection}{planning}{lint}{}", apply_flags(arguments))
}

/// Runs the plan, which changes the broker. Prints the report while topo still holds the locks.
async fn run_plan(
    arguments: &ApplyArguments,
    access: &Access,
    intent: &Intent,
    allowed: &[Allowance],
    interrupt: &Interrupt,
    progress: Progress,
) -> Result<Exit, Failure> {
    let write_backup = |backup: &Backup| backup::write(arguments, progress.is_quiet(), backup);
    let options = RunOptions {
        lock_queue: QueueName::new(arguments.lock_name.as_str()),
        cluster_lock_vhost: VhostName::new(arguments.lock_vhost.as_str()),
        lock_timeout: arguments.lock_timeout,
        drain_timeout: arguments.drain_timeout,
        consumer_wait: arguments.wait_consumers,
        requires_consumers: arguments.require_consumers,
    };
    let request = RunRequest {
        access,
        desired: &intent.desired,
        reviewed: &intent.reviewed,
        allowed,
        backup: (!arguments.no_backup).then_some(&write_backup),
        interrupt,
        options: &options,
    };
    let display = RunDisplay::new(progress, access.broker.shown_url());
    let printed = RefCell::new(Ok(()));
    let observe = |event: RunEvent<'_>| {
        display.show(event);
        if let RunEvent::Ended(outcome) = event {
            *printed.borrow_mut() = print_report(arguments, &intent.next_command, outcome);
        }
    };
    let ended = apply::run(&request, &observe).await;
    display.clear();
    let outcome =
        ended.map_err(|failure| outcome::run_failure(failure, (&intent.next_command, &intent.specs), allowed))?;
    printed.into_inner()?;
    outcome::conclude(outcome)
}

fn print_report(arguments: &ApplyArguments, next_command: &str, outcome: &Outcome) -> Result<(), Failure> {
    let Outcome { plan, reports, left, stopped_shovels, .. } = outcome;
    let left = left.as_ref().ok().map(Vec::as_slice);
    let printed = match arguments.format {
        ReportFormat::Text => output::print(&report_text::report(reports, left, next_command, output::width())),
        ReportFormat::Json => print_json(reports, left, stopped_shovels, (plan.plan(), outcome.status().as_str())),
    };
    for StoppedShovel { address, text } in stopped_shovels {
        output::eprint(&format!("warning: {address}: {}\n", clean(text)));
    }
    printed.map_err(|failure| match outcome.has_changed() {
        true => failure
            .exit(Exit::Partial)
            .hint("the report was lost, but the changes were made; to see the remaining changes, run topo plan"),
        false => failure,
    })
}

fn print_json(
    reports: &[Report],
    left: Option<&[Address]>,
    stopped: &[StoppedShovel],
    (plan, result): (&Plan, &str),
) -> Result<(), Failure> {
    let value = report_json::report(reports, left, stopped, &plan.fingerprint, result);
    output::print(&clean_json(format!("{value:#}\n")))
}
