//! `topo import`: writes a spec from a Terraform state, or from the custom resources of the Messaging Topology
//! Operator.

use super::arguments::Global;
use super::export::{self, WriteOptions};
use super::export_files::ExportTarget;
use super::export_source::Source;
use super::failure::{Exit, Failure};
use super::value_parsers::broker_version;
use super::{files, output};
use crate::import::{ImportError, Imported, LeftOut, operator, terraform};
use crate::model::BrokerVersion;
use crate::model::record_kinds::RECORD_KINDS;
use crate::render::style::clean;
use crate::spec::{Diagnostics, Severity, SourceFile, documents, value_of};
use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The arguments of `topo import`.
#[derive(Debug, Args)]
pub(super) struct ImportArguments {
    #[command(subcommand)]
    command: ImportCommand,
}

#[derive(Debug, Subcommand)]
enum ImportCommand {
    /// Write a spec from a Terraform state, or from the output of `terraform show -json`
    #[command(
        after_long_help = "Examples:\n  topo import terraform terraform.tfstate --out topology.yaml\n  terraform show -json plan.out > plan.json && topo import terraform plan.json"
    )]
    Terraform(TerraformArguments),
    /// Write a spec from the custom resources of the Messaging Topology Operator
    #[command(
        after_long_help = "Examples:\n  topo import operator manifests/*.yaml --out specs/\n  kubectl get -A -o yaml $(kubectl api-resources --api-group=rabbitmq.com -o name | paste -sd, -) | topo import operator -"
    )]
    Operator(OperatorArguments),
}

#[derive(Debug, Args)]
struct TerraformArguments {
    /// State file (terraform.tfstate), or a state or plan in JSON; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Debug, Args)]
struct OperatorArguments {
    /// YAML or JSON files with custom resources; `-` for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Convert only the objects of this RabbitmqCluster
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), env = "TOPO_CLUSTER")]
    cluster: Option<String>,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Debug, Args)]
struct OutputArguments {
    /// Output file (.yaml or .yml), or directory with a file for each vhost; `-` for standard output [default: -]
    #[arg(long, value_name = "FILE|DIR", env = "TOPO_OUT")]
    out: Option<PathBuf>,
    /// Replace existing files
    #[arg(long, env = "TOPO_FORCE", value_parser = BoolishValueParser::new())]
    force: bool,
    /// RabbitMQ version to assume [default: the newest known]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    broker_version: Option<BrokerVersion>,
}

/// Runs the command.
pub(super) fn run(arguments: &ImportArguments, global: &Global) -> Result<Exit, Failure> {
    let (imported, output) = match &arguments.command {
        ImportCommand::Terraform(arguments) => {
            let text = files::import_text(&arguments.file)?;
            let imported =
                terraform::import(&text).map_err(|error| failure(std::slice::from_ref(&arguments.file), &error))?;
            (imported, &arguments.output)
        }
        ImportCommand::Operator(arguments) => {
            let mut all = Vec::new();
            for path in &arguments.files {
                all.extend(manifests(path)?);
            }
            let imported = operator::import(&all, arguments.cluster.as_deref());
            (imported.map_err(|error| failure(arguments.files.as_slice(), &error))?, &arguments.output)
        }
    };
    let Imported { definitions, is_empty, left_out } = imported;
    let notes: Vec<String> = left_out.iter().map(|LeftOut { what, why }| clean(&format!("{what}: {why}"))).collect();
    if is_empty {
        let failure = Failure::spec("nothing could be converted".to_owned());
        return Err(notes.into_iter().fold(failure, Failure::because));
    }
    let source = Source::of_definitions(&definitions.to_string(), output.broker_version)
        .map_err(|error| Failure::spec("the objects cannot be converted".to_owned()).because(error.to_string()))?;
    let options = WriteOptions {
        target: ExportTarget::of(output.out.as_deref())?,
        may_replace: output.force,
        patterns: &[],
        with: RECORD_KINDS.iter().map(|row| row.kind).collect(),
    };
    let exit = export::write(source, &options, global)?;
    if !global.quiet {
        for note in notes {
            output::eprint(&format!("not converted: {note}\n"));
        }
    }
    Ok(exit)
}

/// Reads the documents in a file.
fn manifests(path: &Path) -> Result<Vec<Value>, Failure> {
    let source = SourceFile { name: files::redacted_path(path), text: files::import_text(path)? };
    let mut diagnostics = Diagnostics::new();
    let read = documents(0, &source, &mut diagnostics);
    if let Some(problem) = diagnostics.iter().find(|it| it.severity == Severity::Error) {
        let text = format!("{}:{}: {}", source.name, problem.primary.line, problem.message);
        return Err(Failure::spec(clean(&text)));
    }
    Ok(read.into_iter().flatten().map(|node| json!(value_of(&node))).collect())
}

fn failure(paths: &[PathBuf], error: &ImportError) -> Failure {
    let paths: Vec<String> = paths.iter().map(|path| files::redacted_path(path)).collect();
    let failure = Failure::spec(format!("cannot convert {}", paths.join(", "))).because(clean(&error.to_string()));
    match error {
        ImportError::NotJson(_) => {
            failure.hint("a saved plan is binary; convert it: terraform show -json PLAN > plan.json")
        }
        ImportError::SeveralClusters(_) => failure.hint("select one: --cluster NAME"),
        ImportError::Unknown(_) | ImportError::Nothing(_) | ImportError::UnknownCluster(_) => failure,
    }
}
