//! `topo schema`: the JSON Schemas, as they are committed under `schema/`.

use super::arguments::{SchemaArguments, SchemaKind};
use super::exit::Exit;
use super::failure::Failure;
use super::output;

pub(super) fn run(arguments: &SchemaArguments) -> Result<Exit, Failure> {
    output::print(match arguments.kind {
        SchemaKind::Topology => include_str!("../../schema/topology.schema.json"),
        SchemaKind::Plan => include_str!("../../schema/plan.schema.json"),
    })?;
    Ok(Exit::Done)
}
