//! `topo plan`: what apply would do.

use super::access::Access;
use super::arguments::{Global, PlanArguments, PlanFormat};
use super::exit::Exit;
use super::failure::Failure;
use super::planning::Planned;
use super::progress::Progress;
use super::shell;
use super::{against, connection, findings, input, output, planning};
use crate::plan::{Allowance, Plan, obstacles};
use crate::render::{View, plan_github, plan_markdown, plan_text};

pub(super) async fn run(arguments: &PlanArguments, global: &Global) -> Result<Exit, Failure> {
    connection::no_password(&arguments.connection)?;
    let mut loaded = input::load(&arguments.spec, "topo plan")?;
    let options = planning::options(&arguments.planning);
    let allowed = planning::allowances(&arguments.planning);
    let Planned { plan, dialects } = match &arguments.against {
        Some(source) => against::plan(source, arguments.broker_version, &mut loaded, &options)?,
        None => {
            let access = Access::new(&arguments.connection)?;
            planning::read(&access, &mut loaded, &options, &Progress::new(global)).await?
        }
    };
    planning::known_addresses(&plan)?;
    if let Some(path) = &arguments.out {
        output::write_file(path, &json(&plan))?;
    }
    let apply = arguments.against.is_none().then(|| match &arguments.out {
        Some(path) => {
            let path = shell::quoted(&path.to_string_lossy());
            format!("topo apply --plan {path}{}", connection::flags(&arguments.connection))
        }
        None => apply_line(arguments, &loaded.specs),
    });
    let all = arguments.planning.show.is_some();
    let text = shown(&plan, (arguments.format, all), &allowed, &loaded.specs, apply.as_deref(), global);
    let (levels, fail_on) = (findings::levels(&arguments.lint), arguments.lint.fail_on);
    let beside = findings::beside(&loaded, &dialects, &plan, &levels, fail_on);
    output::print(&beside.joined(text, arguments.format, &loaded, global))?;
    let exit = match (arguments.detailed_exitcode, plan.is_empty()) {
        (false, _) | (true, true) => Exit::Done,
        (true, false) if obstacles(&plan, &allowed).is_empty() => Exit::Changes,
        (true, false) => return Ok(Exit::Blocked),
    };
    beside.too_bad(fail_on).map_or(Ok(exit), Err)
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
    text
}

/// The command that applies this plan: the same specs and the same flags.
fn apply_line(arguments: &PlanArguments, specs: &str) -> String {
    let spec = input::flags(&arguments.spec, specs);
    format!("topo apply{spec}{}{}", connection::flags(&arguments.connection), planning::flags(&arguments.planning))
}
