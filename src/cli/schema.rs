//! `topo schema`: the JSON Schemas, as they are committed under `schema/`.

use super::exit::Exit;
use super::failure::Failure;
use super::offline_arguments::{SchemaArguments, SchemaKind};
use super::output;

pub(super) fn run(arguments: &SchemaArguments) -> Result<Exit, Failure> {
    output::print(match arguments.kind {
        SchemaKind::Topology => include_str!("../../schema/topology.schema.json"),
        SchemaKind::Plan => include_str!("../../schema/plan.schema.json"),
        SchemaKind::Contract => include_str!("../../schema/contract.schema.json"),
    })?;
    Ok(Exit::Done)
}
