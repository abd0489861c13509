//! `topo plan`: what apply would do.

use super::access::Access;
use super::arguments::{Global, PlanArguments, PlanFormat};
use super::exit::Exit;
use super::failure::Failure;
use super::planning::Planned;
use super::progress::Progress;
use super::shell;
use super::sources::Sources;
use super::{against, connection, findings, input, output, planning};
use crate::model::printable::clean_json;
use crate::plan::{Allowance, Plan, obstacles};
use crate::render::{View, plan_github, plan_markdown, plan_text};

pub(super) async fn run(arguments: &PlanArguments, global: &Global) -> Result<Exit, Failure> {
    connection::no_password(&arguments.connection)?;
    let sources = Sources::read(&arguments.spec, "topo plan")?;
    let options = planning::options(&arguments.planning)?;
    let allowed = planning::allowances(&arguments.planning);
    let Planned { loaded, plan, found, .. } = match &arguments.against {
        Some(source) => {
            let loaded = input::load(sources)?;
            against::plan(source, arguments.broker_version, loaded, &options, &arguments.lint)?
        }
        None => {
            let access = match Access::new(&arguments.connection, arguments.planning.intervals.intervals()) {
                Ok(access) => access,
                // What is wrong with the specs is said first.
                Err(failure) => return Err(input::load(sources).err().unwrap_or(failure)),
            };
            planning::read(&access, sources, &options, &arguments.lint, &Progress::new(global)).await?
        }
    };
    planning::known_addresses(&plan)?;
    if let Some(path) = &arguments.out {
        output::write_file(path, &json(&plan))?;
    }
    let apply = arguments.against.is_none().then(|| match &arguments.out {
        Some(path) => {
            let path = shell::path(path);
            let intervals = arguments.planning.intervals.flags();
            format!("topo apply --plan {path}{}{intervals}", connection::flags(&arguments.connection))
        }
        None => apply_line(arguments, &loaded.specs),
    });
    let all = arguments.planning.show.is_some();
    let shown = |format| shown(&plan, (format, all), &allowed, &loaded.specs, apply.as_deref(), global);
    let beside = findings::beside(found, &plan, &arguments.lint);
    for (format, path) in &arguments.also {
        let text = beside.within(shown(*format), *format, &loaded);
        output::write_file(path, &anstream::adapter::strip_str(&text).to_string())?;
    }
    output::print(&beside.joined(shown(arguments.format), arguments.format, &loaded, global))?;
    planning::report_allowances(&plan, &allowed);
    let exit = match (arguments.detailed_exitcode, plan.is_empty()) {
        (false, _) | (true, true) => Exit::Done,
        (true, false) if obstacles(&plan, &allowed).is_empty() => Exit::Changes,
        (true, false) => return Ok(Exit::Blocked),
    };
    beside.too_bad().map_or(Ok(exit), Err)
}

/// The plan as `--format` and `--show all` say.
pub(super) fn shown(
    plan: &Plan,
    (format, all): (PlanFormat, bool),
    allowed: &[Allowance],
    specs: &str,
    apply: Option<&str>,
    global: &Global,
) -> String {
    let obstacles = obstacles(plan, allowed);
    let mut view = View { width: output::width(), obstacles: &obstacles, specs, apply, details: global.verbose, all };
    match format {
        PlanFormat::Text => plan_text::plan(plan, &view),
        PlanFormat::Json => json(plan),
        PlanFormat::Markdown => {
            view.width = 100;
            let text = anstream::adapter::strip_str(&plan_text::plan(plan, &view)).to_string();
            plan_markdown::plan(plan, &view, &text)
        }
        PlanFormat::Github => plan_github::plan(plan, &obstacles, &plan_text::summary_line(plan)),
    }
}

/// The plan as the document that is saved.
pub(super) fn json(plan: &Plan) -> String {
    let mut text = serde_json::to_string_pretty(plan).expect("plans hold nothing that JSON cannot: all keys are text");
    text.push('\n');
    clean_json(text)
}

/// The command that applies this plan: the same specs and the same flags.
fn apply_line(arguments: &PlanArguments, specs: &str) -> String {
    let spec = input::flags(&arguments.spec, specs);
    let (connection, planning) = (connection::flags(&arguments.connection), planning::flags(&arguments.planning));
    format!("topo apply{spec}{connection}{planning}{}", findings::flags(&arguments.lint))
}
