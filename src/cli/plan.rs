//! `topo plan`: shows what `topo apply` would change.
//!
//! With `--against`, topo plans without a connection.

use super::arguments::{Global, PlanFormat, PrintingArguments};
use super::failure::{Exit, Failure};
use super::input;
use super::plan_arguments::PlanArguments;
use super::planning::{self, Planned};
use super::progress::Progress;
use super::sources::Sources;
use super::{connection, files, findings, offline_plan, output, rights, secrets};
use crate::model::QueueName;
use crate::model::names::{DEFAULT_VHOST, LOCK_QUEUE};
use crate::model::printable::clean_json;
use crate::plan::fingerprint::content_hash;
use crate::plan::{Allowance, Blockers, Plan, blockers_of};
use crate::render::{View, plan_github, plan_markdown, plan_short, plan_summary, plan_text};
use clap::ValueEnum;

pub(super) async fn run(arguments: &PlanArguments, global: &Global) -> Result<Exit, Failure> {
    connection::refuse_password(&arguments.connection)?;
    check_printing(&arguments.printing)?;
    let sources = Sources::read(&arguments.spec, "topo plan")?;
    let options = planning::options(&arguments.planning, sources.environment.as_ref())?;
    let allowed = planning::allowances(&arguments.planning.allow);
    let Planned { loaded, plan, found, .. } = match &arguments.against {
        Some(source) => {
            let loaded = input::load(sources)?;
            offline_plan::plan(source, arguments, loaded, &options)?
        }
        None => {
            let intervals = arguments.planning.intervals.intervals();
            let connected = connection::connect_to(&arguments.connection, sources.environment.as_ref(), intervals);
            let mut access = match connected {
                Ok(access) => access,
                // Errors in the specs take precedence.
                Err(failure) => return Err(input::load(sources).err().unwrap_or(failure)),
            };
            let progress = Progress::new(global);
            let [lock, vhost] = ["TOPO_LOCK_NAME", "TOPO_LOCK_VHOST"].map(connection::environment);
            let (lock, vhost) = (lock.as_deref().unwrap_or(LOCK_QUEUE), vhost.as_deref().unwrap_or(DEFAULT_VHOST));
            access.lock_queue = QueueName::new(lock);
            let mut planned = planning::read_and_plan(&access, sources, &options, &arguments.lint, &progress).await?;
            rights::add_missing(&access, &mut planned.plan, lock, vhost).await;
            secrets::report_plain_connection(&access.broker, &mut planned.plan);
            planned
        }
    };
    planning::check_addresses(&plan)?;
    if let Some(path) = &arguments.out {
        output::write_file(path, &json(&plan))?;
    }
    let apply = arguments.against.is_none().then(|| match &arguments.out {
        Some(path) => {
            let path = files::path_argument(path);
            let intervals = arguments.planning.intervals.flags();
            format!("topo apply --plan {path}{}{intervals}", connection::flags(&arguments.connection))
        }
        None => apply_command(arguments, &loaded.specs),
    });
    let all = arguments.planning.show.is_some();
    let view = Layout { apply: apply.as_deref(), all, ..Layout::of(&loaded.specs, &allowed, global) };
    let lint_findings = findings::for_plan(found, &plan, &arguments.lint);
    let insert_into = |text, format| lint_findings.insert_into(text, format, &loaded);
    let insert_or_print = |text, format| lint_findings.insert_or_print(text, format, &loaded, global);
    print(&plan, &arguments.printing, &view, insert_into, insert_or_print)?;
    planning::report_allowances(&plan, &allowed);
    let exit = exit(&plan, &arguments.printing, &allowed);
    if exit == Exit::Blocked { Ok(exit) } else { lint_findings.lint_failure().map_or(Ok(exit), Err) }
}

/// The inputs for printing a plan in any format.
#[derive(Clone, Copy)]
pub(super) struct Layout<'a> {
    pub(super) specs: &'a str,
    pub(super) allowed: &'a [Allowance],
    /// The command that applies the plan; `None` if the plan cannot be applied or the command is not printed.
    pub(super) apply: Option<&'a str>,
    /// True if every object is listed (`--show all`).
    pub(super) all: bool,
    pub(super) global: &'a Global,
}

impl<'a> Layout<'a> {
    pub(super) fn of(specs: &'a str, allowed: &'a [Allowance], global: &'a Global) -> Self {
        Self { specs, allowed, apply: None, all: false, global }
    }
}

/// Writes the `--also` files, and prints the plan. `insert_into` adds the lint findings to the text of a file, and
/// `insert_or_print` adds them to the printed text.
pub(super) fn print(
    plan: &Plan,
    arguments: &PrintingArguments,
    layout: &Layout<'_>,
    insert_into: impl Fn(String, PlanFormat) -> String,
    insert_or_print: impl FnOnce(String, PlanFormat) -> String,
) -> Result<(), Failure> {
    for (format, path) in &arguments.also {
        let text = insert_into(render(plan, *format, layout), *format);
        output::write_file(path, &anstream::adapter::strip_str(&text).to_string())?;
    }
    let text = match arguments.short {
        true => plan_short::plan(plan, &layout.view(&blockers_of(plan, layout.allowed))),
        false => render(plan, arguments.format, layout),
    };
    output::print(&insert_or_print(text, arguments.format))
}

/// Refuses `--short` together with a format that has no short form.
pub(super) fn check_printing(arguments: &PrintingArguments) -> Result<(), Failure> {
    if !arguments.short || arguments.format == PlanFormat::Text {
        return Ok(());
    }
    let format = arguments.format.to_possible_value();
    let word = format.as_ref().map_or("text", |format| format.get_name());
    Err(Failure::usage(format!("--short cannot be used with --format {word}"))
        .hint(format!("print the short text, and write the other format to a file: --short --also {word}=FILE")))
}

/// Returns the exit code for a printed plan. Without `--detailed-exitcode`, this is always [`Exit::Done`].
pub(super) fn exit(plan: &Plan, arguments: &PrintingArguments, allowed: &[Allowance]) -> Exit {
    match (arguments.detailed_exitcode, plan.is_empty()) {
        (false, _) | (true, true) => Exit::Done,
        (true, false) if blockers_of(plan, allowed).is_empty() => Exit::Changes,
        (true, false) => Exit::Blocked,
    }
}

impl Layout<'_> {
    fn view<'a>(&'a self, blockers: &'a Blockers) -> View<'a> {
        let Self { specs, apply, all, global, .. } = *self;
        View { width: output::width(), blockers, specs, apply, details: global.verbose, all }
    }
}

/// Renders the plan in a format.
pub(super) fn render(plan: &Plan, format: PlanFormat, layout: &Layout<'_>) -> String {
    let blockers = blockers_of(plan, layout.allowed);
    let mut view = layout.view(&blockers);
    match format {
        PlanFormat::Text => plan_text::plan(plan, &view),
        PlanFormat::Json => json(plan),
        PlanFormat::Markdown => {
            view.width = 100;
            let text = anstream::adapter::strip_str(&plan_text::plan(plan, &view)).to_string();
            plan_markdown::plan(plan, &view, &text)
        }
        PlanFormat::Github => plan_github::plan(plan, &blockers, &plan_summary::summary_line(plan)),
    }
}

/// Renders the plan as the JSON document that `--out` saves.
pub(super) fn json(plan: &Plan) -> String {
    let sealed = Plan { content_hash: content_hash(plan), ..plan.clone() };
    let mut text = serde_json::to_string_pretty(&sealed).expect("JSON can represent every plan: all keys are strings");
    text.push('\n');
    clean_json(text)
}

/// Returns the apply command with the same specs and flags.
fn apply_command(arguments: &PlanArguments, specs: &str) -> String {
    let spec = input::flags(&arguments.spec, specs);
    let (connection, planning) = (connection::flags(&arguments.connection), planning::flags(&arguments.planning));
    format!("topo apply{spec}{connection}{planning}{}", findings::flags(&arguments.lint))
}
