//! `topo apply`: plans, asks for confirmation, runs the plan and prints the report.

use super::arguments::{ApplyArguments, Global, ReportFormat};
use super::exit::Exit;
use super::failure::Failure;
use super::plan::{Layout, shown};
use super::planning::Planned;
use super::printing_arguments::PlanFormat;
use super::progress::Progress;
use super::run_display::RunDisplay;
use super::run_failure::{self, expected, fresh};
use super::shell;
use super::sources::Sources;
use super::{backup, confirm, connection, findings, input, interruption, outcome, output, planning, rights};
use crate::apply::{self, Backup, Interrupt, Outcome, Report, RunEvent, RunOptions, RunRequest, Status};
use crate::broker::Access;
use crate::model::printable::clean_json;
use crate::model::{Address, QueueName, VhostName};
use crate::plan::{Allowance, Desired, Options, Plan, obstacles};
use crate::render::{next_line, report_json, report_text};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

/// The changes to apply, and the plan that was shown.
struct Intent {
    desired: Vec<Arc<Desired>>,
    seen: Plan,
    specs: String,
    again: String,
    /// The failure for findings at or above `--fail-on`. A saved plan was reviewed with its findings.
    too_bad: Option<Failure>,
}

pub(super) async fn run(arguments: &ApplyArguments, global: &Global) -> Result<Exit, Failure> {
    connection::no_password(&arguments.connection)?;
    let saved = arguments.plan.as_deref().map(input::saved_plan).transpose()?;
    let may_go_on = arguments.yes || saved.is_some() || arguments.dry_run || confirm::is_possible();
    if !may_go_on {
        return Err(no_terminal(arguments));
    }
    let progress = Progress::new(global);
    let access = connection::connect(&arguments.connection, arguments.planning.intervals.intervals())?;
    let allowed = planning::allowances(&arguments.planning.allow);
    let mut intent = intent(arguments, saved, &access, global).await?;
    let missing_rights = rights::note(&access, &mut intent.seen, &arguments.lock_name).await;
    let all = arguments.planning.show.is_some();
    if arguments.format == ReportFormat::Text {
        let layout = Layout { all, ..Layout::of(&intent.specs, &allowed, global) };
        output::print(&shown(&intent.seen, PlanFormat::Text, &layout))?;
    }
    planning::report_allowances(&intent.seen, &allowed);
    // After the plan is printed: two hashes alone would not show the difference.
    expected(arguments, &intent.seen)?;
    let open = obstacles(&intent.seen, &allowed);
    if !open.is_empty() {
        let command = next_line::paste_line(&intent.again, &open);
        let mut failure = planning::blocked(&open);
        if !open.hazards.is_empty() {
            failure = failure.hint(format!("to apply nevertheless: {command}"));
        }
        if arguments.format == ReportFormat::Json {
            print_json(&[], Some(&[]), &intent.seen, Status::Blocked.as_str())?;
        }
        return Err(failure);
    }
    if let Some(failure) = intent.too_bad.take() {
        if arguments.format == ReportFormat::Json {
            print_json(&[], Some(&[]), &intent.seen, Status::Failed.as_str())?;
        }
        return Err(failure);
    }
    if intent.seen.step_count() == 0 || arguments.dry_run {
        if arguments.format == ReportFormat::Json {
            print_json(&[], Some(&[]), &intent.seen, "nothing to do")?;
        }
        return Ok(Exit::Done);
    }
    if let Some(failure) = rights::refusal(missing_rights).filter(|_| !arguments.ignore_missing_rights) {
        if arguments.format == ReportFormat::Json {
            print_json(&[], Some(&[]), &intent.seen, Status::Failed.as_str())?;
        }
        return Err(failure);
    }
    if !arguments.yes && arguments.plan.is_none() && !confirm::ask(&intent.seen)? {
        return Err(Failure::failed("not confirmed; nothing was changed"));
    }
    let interrupt = Interrupt::default();
    tokio::select! {
        ended = run_plan(arguments, &access, &intent, &allowed, &interrupt, progress) => ended,
        () = interruption::insisted(&interrupt) => {
            Err(Failure::failed("stopped at once: steps in progress may or may not have completed, and no other steps were started")
                .exit(Exit::Partial)
                .because("the lock was not released; it expires within a minute")
                .hint(format!("to see what is left and continue after that: {}", intent.again)))
        }
    }
}

/// The plan that is applied: a saved one, or one made now.
async fn intent(
    arguments: &ApplyArguments,
    saved: Option<Plan>,
    access: &Access,
    global: &Global,
) -> Result<Intent, Failure> {
    let progress = &Progress::new(global);
    if !arguments.abort.is_empty() {
        return aborted(arguments, access, progress).await;
    }
    let Some(saved) = saved else {
        let sources = Sources::read(&arguments.spec, "topo apply")?;
        let options = planning::options(&arguments.planning)?;
        let Planned { loaded, plan: seen, desired, found } =
            planning::read(access, sources, &options, &arguments.lint, progress).await?;
        planning::known_addresses(&seen)?;
        let beside = findings::beside(found, &seen, &arguments.lint);
        beside.tell(&loaded, global);
        let (again, too_bad) = (again(arguments, &loaded.specs), beside.too_bad());
        return Ok(Intent { desired, seen, specs: loaded.specs, again, too_bad });
    };
    let (made_for, here) = (saved.target.url.as_str(), access.broker.shown_url());
    if made_for != here && !arguments.allow_other_broker {
        return Err(Failure::usage(format!("the plan was made for {made_for}, not for {here}; nothing was changed"))
            .hint(format!("apply it there: --url {}", shell::quoted(made_for)))
            .hint("if both URLs lead to the same broker, for example through a tunnel: --allow-other-broker"));
    }
    let desired: Vec<Arc<Desired>> = saved.vhosts.iter().map(|part| Arc::clone(&part.desired)).collect();
    let now = planning::plan(access, &desired, &saved.options, progress).await?;
    fresh(&saved, &now)?;
    let path = arguments.plan.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    let connection = connection::flags(&arguments.connection) + &arguments.planning.intervals.flags();
    let other = if arguments.allow_other_broker { " --allow-other-broker" } else { "" };
    let again =
        format!("topo apply --plan {}{connection}{other}{}", shell::path(Path::new(&path)), own_flags(arguments));
    Ok(Intent { desired, seen: now, specs: path, again, too_bad: None })
}

/// Plans the rollback of migrations. It needs no spec: the broker has all the information.
async fn aborted(arguments: &ApplyArguments, access: &Access, progress: &Progress) -> Result<Intent, Failure> {
    let mut vhosts: Vec<VhostName> = Vec::new();
    for address in &arguments.abort {
        let vhost = address.vhost();
        if !vhosts.contains(&vhost) {
            vhosts.push(vhost);
        }
    }
    let desired: Vec<Arc<Desired>> = vhosts.into_iter().map(Desired::nothing).map(Arc::new).collect();
    let options = Options { abort: arguments.abort.iter().cloned().collect(), ..Options::default() };
    let seen = planning::plan(access, &desired, &options, progress).await?;
    let again = abort_line(arguments);
    Ok(Intent { desired, seen, specs: "none: a migration is rolled back".to_owned(), again, too_bad: None })
}

/// Returns the command that rolls the migrations back.
fn abort_line(arguments: &ApplyArguments) -> String {
    let flags: String =
        arguments.abort.iter().map(|address| format!(" --abort {}", shell::quoted(address.as_str()))).collect();
    let connection = connection::flags(&arguments.connection) + &arguments.planning.intervals.flags();
    format!("topo apply{flags}{connection}{}", own_flags(arguments))
}

/// The failure of a run with neither a terminal, nor `--yes`, nor a reviewed plan.
fn no_terminal(arguments: &ApplyArguments) -> Failure {
    let failure = Failure::usage("no terminal is available to ask for confirmation");
    if arguments.abort.is_empty() {
        return failure
            .hint("apply without confirmation: topo apply --yes")
            .hint("or apply a reviewed plan: topo plan --out plan.json, then topo apply --plan plan.json");
    }
    failure.hint(format!("apply without confirmation: {} --yes", abort_line(arguments)))
}

/// Returns the flags of apply that suggested commands need too.
fn own_flags(arguments: &ApplyArguments) -> String {
    let rights = if arguments.ignore_missing_rights { " --ignore-missing-rights" } else { "" };
    format!("{}{rights}", connection::lock_flag(&arguments.lock_name))
}

/// Returns the command that continues after this run.
fn again(arguments: &ApplyArguments, specs: &str) -> String {
    let (spec, planning) = (input::flags(&arguments.spec, specs), planning::flags(&arguments.planning));
    let (connection, lint) = (connection::flags(&arguments.connection), findings::flags(&arguments.lint));
    format!("topo apply{spec}{connection}{planning}{lint}{}", own_flags(arguments))
}

/// Runs the plan. From here on, the broker is changed. The report is printed while the locks are still held.
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
        lock_timeout: arguments.lock_timeout,
        drain_timeout: arguments.drain_timeout,
    };
    let request = RunRequest {
        access,
        desired: &intent.desired,
        reviewed: &intent.seen,
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
            *printed.borrow_mut() = print_report(arguments, &intent.again, outcome);
        }
    };
    let ended = apply::run(&request, &observe).await;
    display.clear();
    let outcome = ended.map_err(|failure| run_failure::of(failure, (&intent.again, &intent.specs), allowed))?;
    printed.into_inner()?;
    outcome::conclude(outcome)
}

fn print_report(arguments: &ApplyArguments, again: &str, outcome: &Outcome) -> Result<(), Failure> {
    let Outcome { plan, reports, left } = outcome;
    let left = left.as_ref().ok().map(Vec::as_slice);
    let printed = match arguments.format {
        ReportFormat::Text => output::print(&report_text::report(reports, left, again, output::width())),
        ReportFormat::Json => print_json(reports, left, plan.plan(), outcome.status().as_str()),
    };
    printed.map_err(|failure| match outcome.has_changed() {
        true => failure
            .exit(Exit::Partial)
            .hint("the report is lost, but the changes were made: topo plan shows what is left"),
        false => failure,
    })
}

fn print_json(reports: &[Report], left: Option<&[Address]>, plan: &Plan, result: &str) -> Result<(), Failure> {
    let value = report_json::report(reports, left, &plan.fingerprint, result);
    output::print(&clean_json(format!("{value:#}\n")))
}
