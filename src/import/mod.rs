//! Converts the state of other tools, such as Terraform, to a definitions file. `export` converts this file to a spec.

mod definitions;
pub mod operator;
pub mod terraform;

use serde_json::Value;

/// The result of a conversion from another tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The objects, as a definitions file.
    pub definitions: Value,
    /// True if no objects were converted.
    pub is_empty: bool,
    /// The objects and settings that were not converted.
    pub left_out: Vec<LeftOut>,
}

/// An object or a setting that was not converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of the object in the other tool, such as `rabbitmq_user.app` or `Shovel/from-old`.
    pub what: String,
    /// The reason.
    pub why: String,
}

/// The reason why files cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The file is not JSON.
    #[error("it is not valid JSON: {0}")]
    NotJson(String),
    /// The file does not have the format of the tool.
    #[error("{0}")]
    Unknown(&'static str),
    /// The file contains no RabbitMQ objects.
    #[error("no {0} found")]
    Nothing(&'static str),
    /// The objects belong to several clusters.
    #[error("the objects belong to several clusters: {}", .0.join(", "))]
    SeveralClusters(Vec<String>),
    /// No object belongs to this cluster.
    #[error("no objects belong to cluster {0}")]
    UnknownCluster(String),
}
