//! `topo dlq list`: lists the dead-letter queues in a vhost, or groups the messages in one queue.

use super::super::arguments::{Global, ReportFormat};
use super::super::failure::{Exit, Failure};
use super::super::output;
use super::selection::SelectionArguments;
use super::target::{ProgressDisplay, ReadingArguments, TargetArguments, inspect_until_second_signal, inspection_exit};
use crate::apply::Interrupt;
use crate::model::QueueName;
use crate::operate::dlq::{GroupKey, Groups, InspectOptions, inspect};
use crate::render::dlq::{groups_json, groups_text, queues_json, queues_text};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::time::SystemTime;

pub(super) async fn run(arguments: &ListArguments, global: &Global) -> Result<Exit, Failure> {
    let selection = arguments.selection.selection()?;
    let target = arguments.target.read(global).await?;
    let Some(name) = &arguments.queue else {
        let queues = target.state.list();
        output::print(&match arguments.format {
            ReportFormat::Text => queues_text(&target.vhost, &queues, &arguments.target.flags(), output::width()),
            ReportFormat::Json => queues_json(&target.vhost, &queues),
        })?;
        return Ok(Exit::Done);
    };
    let queue = QueueName::new(name.as_str());
    target.expect(&queue, &arguments.reading).map_err(|error| arguments.target.failure(error))?;
    let keys = if arguments.group_by.is_empty() { DEFAULT_KEYS.to_vec() } else { arguments.group_by.clone() };
    let mut groups = Groups::new(keys);
    let options = InspectOptions {
        selection,
        limit: arguments.limit,
        hold: arguments.reading.hold(),
        allowed: arguments.reading.allow.clone(),
    };
    let interrupt = Interrupt::default();
    let shown = ProgressDisplay::start(global, format!("inspecting {queue}"));
    let total = target.state.messages(&queue).unwrap_or(0);
    let mut seen = 0;
    let mut visit = |it| {
        groups.add(&it);
        seen += 1;
        shown.update(seen, total, "inspected");
        Ok(())
    };
    let inspected = async {
        let inspected = inspect(&target.access, &target.state, &queue, &options, &interrupt, &mut visit).await;
        inspected.map_err(|error| arguments.target.failure(error))
    };
    let inspection = inspect_until_second_signal(&interrupt, inspected).await?;
    drop(shown);
    output::print(&match arguments.format {
        ReportFormat::Text => groups_text(&queue, &groups, &inspection, SystemTime::now(), output::width()),
        ReportFormat::Json => groups_json(&target.vhost, &queue, &groups, &inspection),
    })?;
    Ok(inspection_exit(&inspection, &interrupt))
}

const DEFAULT_KEYS: [GroupKey; 4] = [GroupKey::Source, GroupKey::Reason, GroupKey::RoutingKey, GroupKey::Error];

fn group_key(word: &str) -> Result<GroupKey, String> {
    let names = GroupKey::ALL.map(GroupKey::as_str);
    GroupKey::ALL
        .into_iter()
        .find(|it| it.as_str() == word)
        .ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// Dead-letter queue to inspect [default: list all dead-letter queues without reading messages]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    queue: Option<String>,
    /// Properties by which messages are grouped: source, reason, routing-key, error, exchange and replays [default:
    /// source,reason,routing-key,error]
    #[arg(long, value_name = "KEYS", value_delimiter = ',', value_parser = group_key, requires = "queue")]
    group_by: Vec<GroupKey>,
    /// Maximum number of messages to count
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), requires = "queue")]
    limit: Option<u64>,
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
