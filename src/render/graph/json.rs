//! Renders a graph as JSON.

use crate::graph::Graph;
use crate::model::printable::clean_json;
use serde_json::json;

/// The version of the document's shape.
const FORMAT_VERSION: u32 = 1;

/// The picture. `from` and `to` of an arrow count the nodes of its vhost from 0.
pub fn json(picture: &Graph) -> String {
    let document = json!({ "formatVersion": FORMAT_VERSION, "isPlan": picture.is_plan, "vhosts": picture.vhosts });
    clean_json(format!("{document:#}\n"))
}
