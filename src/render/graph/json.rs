//! A picture as JSON, for programs.

use crate::picture::Picture;
use serde_json::json;

/// The version of the document's shape.
const FORMAT_VERSION: u32 = 1;

/// The picture. `from` and `to` of an arrow count the nodes of its vhost from 0.
pub fn json(picture: &Picture) -> String {
    let document = json!({ "formatVersion": FORMAT_VERSION, "isPlan": picture.is_plan, "vhosts": picture.vhosts });
    format!("{document:#}\n")
}
