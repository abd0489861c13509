//! `topo apply`: plans, asks for confirmation, locks, plans again, executes, verifies and reports.

use super::access::Access;
use super::arguments::{ApplyArguments, Global, ReportFormat};
use super::exit::Exit;
use super::failure::Failure;
use super::locking::{self, Locks};
use super::plan::{Layout, shown};
use super::planning::Planned;
use super::printing_arguments::PlanFormat;
use super::progress::Progress;
use super::shell;
use super::sources::Sources;
use super::stale::{expected, fresh};
use super::{backup, confirm, connection, findings, input, interruption, outcome, output, planning, rights};
use crate::apply::{ApplyResources, CONCURRENCY, Interrupt, Progress as Event, Report, apply};
use crate::broker::transport::Transport;
use crate::model::printable::clean_json;
use crate::model::{Address, ObjectId, VhostName};
use crate::plan::{Allowance, ApprovedPlan, Desired, Options, Plan, PlannedChange, VhostPlan, gate, obstacles};
use crate::render::{next_line, report_json, report_text};
use futures_util::stream::{self, StreamExt};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The number of vhosts that are changed concurrently: a vhost with few objects waits most of the time.
const VHOSTS_AT_ONCE: usize = 4;

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
    let access = Access::new(&arguments.connection, arguments.planning.intervals.intervals())?;
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
            print_json(&[], Some(&[]), &intent.seen, "blocked")?;
        }
        return Err(failure);
    }
    if let Some(failure) = intent.too_bad.take() {
        if arguments.format == ReportFormat::Json {
            print_json(&[], Some(&[]), &intent.seen, outcome::word(Exit::Failed))?;
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
            print_json(&[], Some(&[]), &intent.seen, outcome::word(Exit::Failed))?;
        }
        return Err(failure);
    }
    if !arguments.yes && arguments.plan.is_none() && !confirm::ask(&intent.seen)? {
        return Err(Failure::failed("not confirmed; nothing was changed"));
    }
    let interrupt = Interrupt::default();
    tokio::select! {
        ended = locked_run(arguments, &access, &intent, &allowed, &interrupt, progress) => ended,
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
    format!("{}{rights}", locking::name_flag(&arguments.lock_name))
}

/// Returns the command that continues after this run.
fn again(arguments: &ApplyArguments, specs: &str) -> String {
    let (spec, planning) = (input::flags(&arguments.spec, specs), planning::flags(&arguments.planning));
    let (connection, lint) = (connection::flags(&arguments.connection), findings::flags(&arguments.lint));
    format!("topo apply{spec}{connection}{planning}{lint}{}", own_flags(arguments))
}

/// Runs under the lock. From here on, the broker is changed.
async fn locked_run(
    arguments: &ApplyArguments,
    access: &Access,
    intent: &Intent,
    allowed: &[Allowance],
    interrupt: &Interrupt,
    progress: Progress,
) -> Result<Exit, Failure> {
    let mut locks = Locks::default();
    let result = match locking::lock(arguments, &access.broker, &intent.seen, interrupt, &mut locks, progress).await {
        Ok(()) => carry_out(arguments, access, intent, allowed, interrupt, progress, &locks).await,
        Err(failure) => Err(locks.explain(failure)),
    };
    locks.release().await;
    result
}

/// Plans again under the lock, checks the hazards, executes the plan, and verifies the result.
async fn carry_out(
    arguments: &ApplyArguments,
    access: &Access,
    intent: &Intent,
    allowed: &[Allowance],
    interrupt: &Interrupt,
    progress: Progress,
    locks: &Locks,
) -> Result<Exit, Failure> {
    let approved = approve(access, intent, allowed, progress).await.map_err(|failure| locks.explain(failure))?;
    backup::write(arguments, progress.is_quiet(), &access.broker, approved.plan())
        .await
        .map_err(|failure| locks.explain(failure))?;
    let transports = access.transports_of(approved.plan()).await.map_err(|failure| locks.explain(failure))?;
    let mut reports = execute(&approved, locks, interrupt, (&transports, arguments.drain_timeout), progress).await;
    locks.complete(&mut reports);
    let complete = reports.iter().all(Report::is_complete);
    // Includes a signal that arrived after the last step.
    for report in reports.iter_mut().filter(|_| complete && interrupt.is_requested()) {
        report.interrupted = true;
    }
    let left = if complete { left(access, intent, &reports, &progress).await } else { Ok(Vec::new()) };
    let print = |left: Option<&[String]>, exit| {
        let printed = match arguments.format {
            ReportFormat::Text => output::print(&report_text::report(&reports, left, &intent.again, output::width())),
            ReportFormat::Json => print_json(&reports, left, approved.plan(), outcome::word(exit)),
        };
        printed.map_err(|failure| match outcome::has_changed(&reports) {
            true => failure
                .exit(Exit::Partial)
                .hint("the report is lost, but the changes were made: topo plan shows what is left"),
            false => failure,
        })
    };
    let left = match left {
        Ok(left) => left,
        Err(failure) => {
            print(None, Exit::Partial)?;
            return Err(failure);
        }
    };
    let exit = outcome::outcome(&reports, &left);
    print(Some(&left), exit)?;
    if exit == Exit::Done { Ok(exit) } else { Err(outcome::failure(&reports, exit)) }
}

/// Returns the plan made under the lock, if it has no new blockers.
async fn approve(
    access: &Access,
    intent: &Intent,
    allowed: &[Allowance],
    progress: Progress,
) -> Result<ApprovedPlan, Failure> {
    let now = planning::plan(access, &intent.desired, &intent.seen.options, &progress).await?;
    fresh(&intent.seen, &now)?;
    gate(now, allowed).map_err(|refused| {
        let (plan, open) = *refused;
        let command = next_line::paste_line(&intent.again, &open);
        let global = Global { color: None, quiet: false, verbose: false };
        output::tell(&shown(&plan, PlanFormat::Text, &Layout::of(&intent.specs, allowed, &global)));
        planning::blocked(&open).hint(format!("the broker has changed since the plan was shown; {command}"))
    })
}

async fn execute(
    approved: &ApprovedPlan,
    locks: &Locks,
    interrupt: &Interrupt,
    (transports, drain): (&[(VhostName, Transport)], Duration),
    progress: Progress,
) -> Vec<Report> {
    let plan = approved.plan();
    let steps = RefCell::new(progress.steps(locks.done().len() + plan.step_count()));
    locks.done().for_each(|step| steps.borrow_mut().over(&report_text::action(&step.action)));
    let tell = |event: Event<'_>| {
        let mut steps = steps.borrow_mut();
        match event {
            Event::Done(step) => steps.done(step.id, step.recreate.as_ref(), &report_text::action(&step.action)),
            Event::Failed(step, _) => steps.over(&format!("{} FAILED", report_text::action(&step.action))),
            Event::Moving(step, moved, left, why) => {
                let rate = moved.and_then(|moved| steps.rate(&report_text::action(&step.action), moved));
                steps.moving(&report_text::moving(&step.action, (moved, left), rate, why));
            }
            Event::Stalled(step, why) => steps.moving(&report_text::stalled(&step.action, why)),
            Event::GoingBack(queue, why) => {
                let line = report_text::going_back(queue, why.map(|why| why as _), output::width());
                steps.undoes(ObjectId::Queue(queue.clone()), &line);
            }
            Event::Waiting(step) => steps.over(&format!("{} LEFT", report_text::action(&step.action))),
        }
    };
    let stopped = Cell::new(false);
    let parts: Vec<&VhostPlan> = plan.vhosts.iter().filter(|part| !part.steps.is_empty()).collect();
    // A migration keeps messages in memory, and several of one vhost already run concurrently.
    let has_migrations = parts.iter().any(|part| !part.migrations.is_empty());
    let vhosts_at_once = if has_migrations { 1 } else { parts.len().clamp(1, VHOSTS_AT_ONCE) };
    let at_once = CONCURRENCY / vhosts_at_once;
    let one = async |part: &VhostPlan| {
        let lock = locks.of(&part.vhost);
        let report = match lock.filter(|_| !stopped.get() && !interrupt.is_requested()) {
            Some(lock) => {
                let transport =
                    transports.iter().find(|(vhost, _)| *vhost == part.vhost).map(|(_, transport)| transport);
                apply(part, lock, interrupt, ApplyResources { at_once, transport, patience: drain }, tell).await
            }
            None => {
                let mut report = Report::new(part.vhost.clone());
                report.not_attempted.clone_from(&part.steps);
                report.interrupted = interrupt.is_requested();
                report
            }
        };
        // Vhosts that have started are completed: each vhost is independent.
        stopped.set(stopped.get() || !report.is_complete());
        report
    };
    stream::iter(parts.into_iter().map(one)).buffered(vhosts_at_once).collect().await
}

/// Returns the objects that still differ after a complete run, except those that are left for the next one. Reading the broker
/// again is the proof; a 204 is not.
async fn left(
    access: &Access,
    intent: &Intent,
    reports: &[Report],
    progress: &Progress,
) -> Result<Vec<String>, Failure> {
    // Migrations that were rolled back are not rolled back again.
    let options = Options { abort: BTreeSet::new(), ..intent.seen.options.clone() };
    let after = planning::plan(access, &intent.desired, &options, progress).await.map_err(|failure| {
        failure.exit(Exit::Partial).because("every step was done, but the result could not be verified")
    })?;
    let waiting: Vec<(&VhostName, &Address)> = reports
        .iter()
        .flat_map(|report| report.waiting.iter().map(|waiting| (&report.vhost, &waiting.step.address)))
        .collect();
    let is_left = |vhost: &VhostName, change: &PlannedChange| {
        let mut in_vhost = waiting.iter().filter(|(of, _)| *of == vhost);
        // Retired objects are deleted together with their tiers.
        !in_vhost.any(|(_, address)| change.retires.is_some() || **address == change.address)
    };
    let changes = after.vhosts.iter().flat_map(|part| part.changes.iter().map(move |change| (&part.vhost, change)));
    let mut left: Vec<String> =
        changes.filter(|(vhost, change)| is_left(vhost, change)).map(|(_, it)| it.address.to_string()).collect();
    // Nothing blocked the executed plan, so these blockers are new.
    for block in after.blocks() {
        let address = block.address.to_string();
        if !left.contains(&address) {
            left.push(address);
        }
    }
    let is_asked = |address: &&String| intent.seen.options.abort.iter().any(|asked| asked.as_str() == **address);
    let interrupted = after.vhosts.iter().flat_map(|part| &part.interrupted).map(|note| note.address.to_string());
    let interrupted: Vec<String> = interrupted.collect();
    left.extend(interrupted.iter().filter(is_asked).cloned());
    Ok(left)
}

fn print_json(reports: &[Report], left: Option<&[String]>, plan: &Plan, result: &str) -> Result<(), Failure> {
    let value = report_json::report(reports, left, &plan.fingerprint, result);
    output::print(&clean_json(format!("{value:#}\n")))
}
