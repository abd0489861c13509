//! `topo dlq replay`: replays messages to the queues in which they failed.

use super::super::arguments::{Global, ReportFormat};
use super::super::failure::{Exit, Failure};
use super::super::value_parsers::duration;
use super::super::{interaction, output};
use super::audit::{self, Started};
use super::selection::SelectionArguments;
use super::target::{ProgressDisplay, ReadingArguments, Target, TargetArguments, confirm, until_second_signal};
use crate::apply::Interrupt;
use crate::model::QueueName;
use crate::model::count::{count, number};
use crate::model::naming::TierName;
use crate::model::printable::clean;
use crate::model::run_id;
use crate::operate::dlq::{
    Breaker, Destination, ReplayOptions, ReplayPlan, ReplayTarget, ReturnPath, plan_replay, replay,
};
use crate::render::dlq::{StoppedRun, audit_line, plan_json, plan_text, report_json, report_text};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;
use std::time::Duration;

/// Shows the plan for a replay, asks for confirmation, and replays the messages.
pub(super) async fn run(arguments: &ReplayArguments, global: &Global) -> Result<Exit, Failure> {
    let can_continue = arguments.yes || arguments.dry_run || interaction::can_confirm();
    if !can_continue {
        return Err(Failure::usage("no terminal is available to ask for confirmation")
            .hint("show the plan: --dry-run")
            .hint("replay without confirmation: --yes"));
    }
    let options = arguments.options()?;
    let queue = QueueName::new(arguments.queue.as_str());
    if matches!(&options.destination, Destination::Queue(to) if TierName::parse(to).is_some()) {
        return Err(Failure::usage("the target of --to is a delayed retry queue"));
    }
    if options.destination == Destination::Queue(queue.clone()) {
        return Err(Failure::usage("the target of --to is the dead-letter queue itself"));
    }
    audit::check(arguments.audit.as_deref())?;
    let target = arguments.target.read(global).await?;
    target.expect(&queue, &arguments.reading).map_err(|error| arguments.target.failure(error))?;
    let interrupt = Interrupt::default();
    let started = Started::default();
    let run = run_with(arguments, &target, (&queue, &options), (&interrupt, &started), global);
    let of =
        |done| StoppedRun { command: "replay", run: Some(&options.run), vhost: &target.vhost, queue: &queue, done };
    let stopped = started.record_stopped(arguments.audit.as_deref(), of, &target.access, global.quiet);
    until_second_signal(&interrupt, run, stopped).await
}

async fn run_with(
    arguments: &ReplayArguments,
    target: &Target,
    (queue, options): (&QueueName, &ReplayOptions),
    (interrupt, started): (&Interrupt, &Started),
    global: &Global,
) -> Result<Exit, Failure> {
    let failure = |error| arguments.target.failure(error);
    let shown = ProgressDisplay::start(global, format!("inspecting {queue}"));
    let planned = plan_replay(&target.access, &target.state, queue, options, interrupt).await;
    drop(shown);
    let mut plan = planned.map_err(failure)?;
    if interrupt.is_requested() {
        return Err(Failure::failed("interrupted; no message was moved").exit(Exit::Interrupted));
    }
    let is_text = arguments.format == ReportFormat::Text;
    if is_text {
        output::print(&plan_text(&plan, options, output::width()))?;
    } else if arguments.dry_run {
        output::print(&plan_json(&target.vhost, &plan, options))?;
    }
    if arguments.dry_run {
        return Ok(Exit::Done);
    }
    if plan.messages() == 0 && plan.is_complete {
        output::eprint("no messages to replay\n");
        return Ok(Exit::Done);
    }
    if plan.targets.is_empty() {
        let message = format!(
            "none of the {} inspected messages can be replayed; topo reached the limit for held messages (--hold, or 1 GB in total)",
            number(plan.inspected)
        );
        return Err(Failure::failed(message));
    }
    if plan.waits_too_long(options.breaker) {
        return Err(Failure::failed(
            "the outcome of the first messages is known only after all of their retries, but topo waits for at most 10 minutes",
        )
        .exit(Exit::Blocked)
        .hint("replay without waiting for the outcome: --canary 0"));
    }
    let is_refused = plan.hazards.iter().any(|(hazard, _)| !options.allowed.contains(hazard));
    if !arguments.yes && !is_refused && !confirm(question(&plan, options), interrupt).await? {
        let failure = Failure::failed("not confirmed; no message was moved");
        return Err(if interrupt.is_requested() { failure.exit(Exit::Interrupted) } else { failure });
    }
    let planned = plan.targets.clone();
    let shown = ProgressDisplay::start(global, format!("replaying {queue}"));
    let total = options.limit.unwrap_or(u64::MAX).min(if plan.is_complete { plan.messages() } else { plan.before });
    let progress = |counts: &crate::broker::transport::ProcessCounts, came_back: u64| {
        let what = if came_back == 0 { "replayed".to_owned() } else { format!("replayed, {came_back} came back") };
        shown.update(counts.published, total, &what);
        started.record(counts.published);
    };
    started.record(0);
    let replayed = replay(&target.access, &target.state, &mut plan, options, interrupt, &progress).await;
    drop(shown);
    let report = replayed.map_err(failure)?;
    let line = |time: &str, user: &str| audit_line(&report, "replay", time, user);
    audit::write(arguments.audit.as_deref(), line, &target.access, global.quiet)?;
    output::print(&if is_text { report_text(&report, "replayed") } else { report_json(&report, "replay") })
        .map_err(|failure| failure.exit(Exit::Partial))?;
    let is_new = |planned: &ReplayTarget, used: &ReplayTarget| {
        planned.path != used.path && used.path == ReturnPath::DefaultExchange
    };
    for (_, used) in planned.iter().zip(&plan.targets).filter(|(planned, used)| is_new(planned, used)) {
        output::eprint(&format!(
            "note: the messages for {} have the queue name as their routing key, because the user is not allowed to declare or \
             use the planned exchange\n",
            clean(used.queue.as_str())
        ));
    }
    Ok(audit::exit(&report))
}

fn question(plan: &ReplayPlan, options: &ReplayOptions) -> String {
    let messages = options.limit.map_or(plan.messages(), |limit| limit.min(plan.messages()));
    let more = if plan.is_complete { "" } else { ", and all matching messages that topo has not inspected yet" };
    format!("Replay {}{more}? [y/N] ", count(messages, "message"))
}

impl ReplayArguments {
    fn options(&self) -> Result<ReplayOptions, Failure> {
        let destination = match &self.to {
            Some(queue) => Destination::Queue(QueueName::new(queue.as_str())),
            None if self.to_original_exchange => Destination::OriginalExchange,
            None => Destination::Source,
        };
        Ok(ReplayOptions {
            selection: self.selection.selection()?,
            limit: self.limit,
            destination,
            again: self.again,
            rate: self.rate.0,
            breaker: Breaker { share: self.stop_after, canary: self.canary, settle: self.settle },
            hold: self.reading.hold(),
            window: self.window,
            allowed: self.reading.allow.clone(),
            run: run_id(),
        })
    }
}

/// The value of `--rate`; `None` for no maximum.
#[derive(Clone, Copy, Debug)]
struct Rate(Option<f64>);

fn rate(text: &str) -> Result<Rate, String> {
    if text == "none" {
        return Ok(Rate(None));
    }
    let number = text.strip_suffix("/s").unwrap_or(text).parse::<f64>().ok();
    let number = number.filter(|it| it.is_finite() && (0.001..=1_000_000.0).contains(it));
    number.map(|it| Rate(Some(it))).ok_or_else(|| "expected a rate, such as 50/s or 0.5/s, or none".to_owned())
}

/// Parses a percentage, and returns it as a fraction from 0 to 1.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let number = number.filter(|it| (0.0..=100.0).contains(it));
    number.map(|it| it / 100.0).ok_or_else(|| "expected a percentage from 0% to 100%".to_owned())
}

#[derive(Debug, Args)]
pub(super) struct ReplayArguments {
    /// Dead-letter queue
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    queue: String,
    /// Replay the selected messages to this queue, instead of the queues in which they failed
    #[arg(long, value_name = "QUEUE", value_parser = NonEmptyStringValueParser::new(), conflicts_with = "to_original_exchange")]
    to: Option<String>,
    /// Publish each message to its original exchange; every bound queue receives a copy
    #[arg(long)]
    to_original_exchange: bool,
    /// Also replay messages that were replayed before and came back
    #[arg(long)]
    again: bool,
    /// Maximum number of messages to replay
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Maximum number of messages per second, such as 50/s; `none` for no maximum
    #[arg(long, value_name = "RATE", default_value = "50/s", value_parser = rate)]
    rate: Rate,
    /// Stop if more than this share of the replayed messages comes back; after the first messages (--canary), only if
    /// at least 5 come back
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent)]
    stop_after: f64,
    /// Number of messages to replay first; topo waits for their outcome before it continues (0 to disable)
    #[arg(long, value_name = "N", default_value_t = 5)]
    canary: u64,
    /// Time to wait after the last retry before a message counts as successful
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    settle: Duration,
    /// Maximum number of messages that may be duplicated if topo crashes (1 to 10000)
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    window: u16,
    /// Show the plan without moving messages
    #[arg(long)]
    dry_run: bool,
    /// Replay without confirmation
    #[arg(short, long)]
    yes: bool,
    /// File to which the audit record of the run is appended [default: standard error, unless --quiet]
    #[arg(long, value_name = "FILE", env = "TOPO_AUDIT")]
    audit: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    format: ReportFormat,
    #[command(flatten)]
    selection: SelectionArguments,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    target: TargetArguments,
}
