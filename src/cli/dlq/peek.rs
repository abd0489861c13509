//! `topo dlq peek`: shows messages with their history, properties, headers and bodies.

use super::super::arguments::{Global, ReportFormat};
use super::super::failure::{Exit, Failure};
use super::super::output;
use super::selection::SelectionArguments;
use super::target::{ReadingArguments, TargetArguments, inspect_until_second_signal, inspection_exit};
use crate::apply::Interrupt;
use crate::model::QueueName;
use crate::operate::dlq::{DeadLetter, InspectOptions, archived, inspect};
use crate::render::dlq::{BodyFormat, inspection_notes, message_text};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

pub(super) async fn run(arguments: &PeekArguments, global: &Global) -> Result<Exit, Failure> {
    let selection = arguments.selection.selection()?;
    let target = arguments.target.read(global).await?;
    let queue = QueueName::new(arguments.queue.as_str());
    target.expect(&queue, &arguments.reading).map_err(|error| arguments.target.failure(error))?;
    let options = InspectOptions {
        selection,
        limit: Some(arguments.limit),
        hold: arguments.reading.hold(),
        allowed: arguments.reading.allow.clone(),
    };
    let interrupt = Interrupt::default();
    let width = output::width();
    let mut shown = String::new();
    let mut documents = Vec::new();
    let mut visit = |it: DeadLetter| {
        match arguments.format {
            ReportFormat::Text => {
                shown.push_str(&message_text(&it, arguments.body_as.into(), width));
                shown.push('\n');
            }
            ReportFormat::Json => documents.push(archived(&target.vhost, &queue, &it)),
        }
        Ok(())
    };
    let inspected = async {
        let inspected = inspect(&target.access, &target.state, &queue, &options, &interrupt, &mut visit).await;
        inspected.map_err(|error| arguments.target.failure(error))
    };
    let inspection = inspect_until_second_signal(&interrupt, inspected).await?;
    match arguments.format {
        ReportFormat::Text => output::print(&(shown + &inspection_notes(&queue, &inspection)))?,
        ReportFormat::Json => {
            if !inspection.is_complete() && !global.quiet {
                output::eprint(&inspection_notes(&queue, &inspection));
            }
            output::print(&crate::model::printable::clean_json(format!("{:#}\n", serde_json::Value::from(documents))))?;
        }
    }
    Ok(inspection_exit(&inspection, &interrupt))
}

/// The format of message bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Body {
    /// JSON, text or a hexadecimal dump, depending on the body
    #[default]
    Auto,
    /// Text
    Text,
    /// Hexadecimal dump
    Hex,
    /// Only the size
    None,
}

impl From<Body> for BodyFormat {
    fn from(body: Body) -> Self {
        match body {
            Body::Auto => Self::Auto,
            Body::Text => Self::Text,
            Body::Hex => Self::Hex,
            Body::None => Self::None,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct PeekArguments {
    /// Dead-letter queue
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    queue: String,
    /// Maximum number of messages, up to 10000; to read more, use topo dlq export
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    limit: u64,
    /// Format of the bodies in the text output
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    body_as: Body,
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
