//! `topo apply`: plan, ask, lock, plan again, carry out, read back, report.

use super::arguments::{ApplyArguments, Global, PlanFormat, ReportFormat};
use super::exit::Exit;
use super::failure::Failure;
use super::progress::Progress;
use super::{confirm, connection, input, output, planning};
use crate::apply::{Interrupt, Progress as Event, Report, apply};
use crate::broker::{Broker, BrokerError, Holder, LockedBroker};
use crate::model::QueueName;
use crate::plan::fingerprint::{Staleness, staleness};
use crate::plan::{Action, Allowance, ApprovedPlan, Plan, Wanted, gate, obstacles};
use crate::render::{plan_text, report_json, report_text};

/// What is to be applied, and what the person saw of it.
struct Intent {
    wanted: Vec<Wanted>,
    seen: Plan,
    specs: String,
    again: String,
}

pub(super) async fn run(arguments: &ApplyArguments, global: &Global) -> Result<Exit, Failure> {
    let saved = arguments.plan.as_deref().map(input::saved_plan).transpose()?;
    let may_go_on = arguments.yes || saved.is_some() || arguments.dry_run || confirm::is_possible();
    if !may_go_on {
        return Err(Failure::usage("there is no terminal to ask on")
            .hint("say that it is wanted: topo apply --yes")
            .hint("or apply a plan that was reviewed: topo plan --out plan.json, then topo apply --plan plan.json"));
    }
    let progress = Progress::new(global);
    let broker = connection::connect(&arguments.connection)?;
    let allowed = planning::allowances(&arguments.planning);
    let intent = intent(arguments, saved, &broker, &progress).await?;
    expected(arguments, &intent.seen)?;
    let format = |plan: &Plan| super::plan::shown(plan, PlanFormat::Text, &allowed, &intent.specs, None, global);
    if arguments.format == ReportFormat::Text {
        output::print(&format(&intent.seen))?;
    }
    let open = obstacles(&intent.seen, &allowed);
    if !open.is_empty() {
        let command = plan_text::paste_line(&intent.again, &open);
        let mut failure = planning::blocked(&open);
        if !open.hazards.is_empty() {
            failure = failure.hint(format!("to go on all the same: {command}"));
        }
        if arguments.format == ReportFormat::Json {
            print_json(&[], &[], &intent.seen, "blocked")?;
        }
        return Err(failure);
    }
    if intent.seen.step_count() == 0 || arguments.dry_run {
        if arguments.format == ReportFormat::Json {
            print_json(&[], &[], &intent.seen, "nothing to do")?;
        }
        return Ok(Exit::Done);
    }
    if !arguments.yes && arguments.plan.is_none() && !confirm::ask(&intent.seen)? {
        return Err(Failure::failed("not confirmed; nothing was changed"));
    }
    let interrupt = Interrupt::default();
    listen(interrupt.clone());
    locked_run(arguments, &broker, &intent, &allowed, &interrupt, progress).await
}

/// The plan that is applied: a saved one, or one made now.
async fn intent(
    arguments: &ApplyArguments,
    saved: Option<Plan>,
    broker: &Broker,
    progress: &Progress,
) -> Result<Intent, Failure> {
    let Some(saved) = saved else {
        let loaded = input::load(&arguments.spec)?;
        let options = planning::options(&arguments.planning);
        let seen = planning::plan(broker, &loaded.wanted, &options, progress).await?;
        let again = planning::apply_line(&loaded.specs, &arguments.spec, &arguments.connection, &arguments.planning);
        return Ok(Intent { wanted: loaded.wanted, seen, specs: loaded.specs, again });
    };
    let wanted: Vec<Wanted> = saved.vhosts.iter().map(|part| part.wanted.clone()).collect();
    let now = planning::plan(broker, &wanted, &saved.options, progress).await?;
    fresh(&saved, &now)?;
    let path = arguments.plan.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    let again = format!("topo apply --plan {}", input::quoted(&path));
    Ok(Intent { wanted, seen: now, specs: path, again })
}

fn expected(arguments: &ApplyArguments, plan: &Plan) -> Result<(), Failure> {
    match &arguments.expect {
        Some(expected) if *expected != plan.fingerprint && !plan.is_empty() => Err(Failure::failed(format!(
            "the plan is not the one that was expected: its fingerprint is {}, not {expected}; nothing was changed",
            plan.fingerprint
        ))
        .exit(Exit::Stale)
        .hint("look at what is different now: topo plan")),
        Some(_) | None => Ok(()),
    }
}

/// The same steps, or what is left of them; else it is stale.
fn fresh(saved: &Plan, now: &Plan) -> Result<(), Failure> {
    match staleness(saved, now) {
        Staleness::Same | Staleness::Rest => Ok(()),
        Staleness::Stale(news) => {
            let mut failure =
                Failure::failed("the broker no longer matches the plan; nothing was changed").exit(Exit::Stale);
            for new in news.iter().take(10) {
                failure = failure.because(format!("not in the plan: {new}"));
            }
            if news.len() > 10 {
                failure = failure.because(format!("and {} more", news.len() - 10));
            }
            Err(failure.hint("plan again, and look at what is different: topo plan"))
        }
    }
}

/// From here on the broker is changed.
async fn locked_run(
    arguments: &ApplyArguments,
    broker: &Broker,
    intent: &Intent,
    allowed: &[Allowance],
    interrupt: &Interrupt,
    progress: Progress,
) -> Result<Exit, Failure> {
    let mut locks = Vec::new();
    let result = match lock(arguments, broker, &intent.seen, &mut locks, progress).await {
        Ok(()) => carry_out(arguments, broker, intent, allowed, interrupt, progress, &locks).await,
        Err(failure) => Err(failure),
    };
    for lock in locks {
        // A lock that cannot be released is free when its lease runs out; the report matters more.
        if let Err(error) = lock.release().await {
            output::tell(&format!("warning: the lock was not released, it ends by itself within a minute: {error}\n"));
        }
    }
    result
}

/// Locks every vhost that is changed, in the order of their names. A vhost that does not exist is made first: nothing
/// can be locked in it before.
async fn lock(
    arguments: &ApplyArguments,
    broker: &Broker,
    plan: &Plan,
    locks: &mut Vec<LockedBroker>,
    progress: Progress,
) -> Result<(), Failure> {
    let queue = QueueName::new(arguments.lock_name.as_str());
    let waiting = progress.spin("waiting for the lock".to_owned());
    for part in plan.vhosts.iter().filter(|part| !part.steps.is_empty()) {
        let missing = part.changes.iter().any(|change| {
            matches!(change.after, Some(crate::model::Object::Vhost(_)))
                && change.kind == crate::plan::ChangeKind::Create
        });
        if let Some(step) = part.steps.first().filter(|step| missing && matches!(step.action, Action::PutVhost { .. }))
        {
            broker.perform(&part.vhost, &step.action).await?;
        }
        let holder = Holder::new(connection::holder());
        locks.push(broker.lock(&part.vhost, &queue, holder, arguments.lock_timeout).await?);
    }
    drop(waiting);
    Ok(())
}

/// Plans again under the lock, gates, runs, and reads back.
async fn carry_out(
    arguments: &ApplyArguments,
    broker: &Broker,
    intent: &Intent,
    allowed: &[Allowance],
    interrupt: &Interrupt,
    progress: Progress,
    locks: &[LockedBroker],
) -> Result<Exit, Failure> {
    let now = planning::plan(broker, &intent.wanted, &intent.seen.options, &progress).await?;
    fresh(&intent.seen, &now)?;
    let approved = gate(now, allowed).map_err(|refused| {
        let (plan, open) = *refused;
        let command = plan_text::paste_line(&intent.again, &open);
        output::tell(&super::plan::shown(
            &plan,
            PlanFormat::Text,
            allowed,
            &intent.specs,
            None,
            &Global { color: None, quiet: false, verbose: false },
        ));
        planning::blocked(&open).hint(format!("the broker changed since the plan was shown; {command}"))
    })?;
    let reports = execute(&approved, locks, interrupt, progress).await;
    let left =
        if reports.iter().all(Report::is_complete) { left(broker, intent, &progress).await? } else { Vec::new() };
    let exit = outcome(&reports, &left);
    match arguments.format {
        ReportFormat::Text => output::print(&report_text::report(&reports, &left, &intent.again))?,
        ReportFormat::Json => print_json(&reports, &left, approved.plan(), word(exit))?,
    }
    Ok(exit)
}

async fn execute(
    approved: &ApprovedPlan,
    locks: &[LockedBroker],
    interrupt: &Interrupt,
    progress: Progress,
) -> Vec<Report> {
    let plan = approved.plan();
    let mut steps = progress.steps(plan.step_count());
    let mut reports: Vec<Report> = Vec::new();
    for part in plan.vhosts.iter().filter(|part| !part.steps.is_empty()) {
        let stopped = interrupt.is_requested() || reports.iter().any(|report| !report.is_complete());
        let lock = locks.iter().find(|lock| *lock.vhost() == part.vhost);
        let report = match lock.filter(|_| !stopped) {
            Some(lock) => {
                apply(part, lock, interrupt, |event| match event {
                    Event::Done(step) => steps.over(&report_text::action(&step.action)),
                    Event::Failed(step, _) => steps.over(&format!("{} FAILED", report_text::action(&step.action))),
                })
                .await
            }
            None => {
                let mut report = Report::new(part.vhost.clone());
                report.not_attempted.clone_from(&part.steps);
                report.interrupted = interrupt.is_requested();
                report
            }
        };
        reports.push(report);
    }
    reports
}

/// What still differs after a complete run. A 204 proves nothing; reading back does.
async fn left(broker: &Broker, intent: &Intent, progress: &Progress) -> Result<Vec<String>, Failure> {
    let after = planning::plan(broker, &intent.wanted, &intent.seen.options, progress).await.map_err(|failure| {
        failure.exit(Exit::Partial).because("every step was done, but the result could not be read back")
    })?;
    Ok(after.vhosts.iter().flat_map(|part| &part.changes).map(|change| change.address.to_string()).collect())
}

fn outcome(reports: &[Report], left: &[String]) -> Exit {
    let complete = reports.iter().all(Report::is_complete);
    let changed = reports.iter().any(|report| !report.done.is_empty());
    let interrupted = reports.iter().any(|report| report.interrupted);
    match (complete, changed) {
        (true, _) if left.is_empty() => Exit::Done,
        (true, _) | (false, true) => Exit::Partial,
        (false, false) if interrupted => Exit::Interrupted,
        (false, false) => {
            let raced = |error: &BrokerError| error.is_guard() || matches!(error, BrokerError::Inequivalent { .. });
            let refused = reports.iter().flat_map(|report| &report.failed).any(|failed| raced(&failed.error));
            if refused { Exit::Blocked } else { Exit::Failed }
        }
    }
}

fn word(exit: Exit) -> &'static str {
    match exit {
        Exit::Done => "applied",
        Exit::Partial => "partial",
        Exit::Interrupted => "interrupted",
        Exit::Blocked => "blocked",
        Exit::Failed | Exit::Changes | Exit::Stale | Exit::Locked | Exit::Usage | Exit::Spec => "failed",
    }
}

fn print_json(reports: &[Report], left: &[String], plan: &Plan, result: &str) -> Result<(), Failure> {
    let value = report_json::report(reports, left, &plan.fingerprint, result);
    output::print(&format!("{value:#}\n"))
}

/// The first Ctrl-C (or SIGTERM, which is how pipelines stop a job) lets the step under way end; a second one ends the
/// process as it always did.
fn listen(interrupt: Interrupt) {
    tokio::spawn(async move {
        asked_to_stop().await;
        interrupt.request();
        output::tell("\nstopping after the step under way; the report follows\n");
    });
}

#[cfg(unix)]
async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        result = tokio::signal::ctrl_c() => if result.is_err() { std::future::pending::<()>().await },
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn asked_to_stop() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
