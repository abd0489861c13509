//! Topic permissions: the routing keys with which a user may publish to an exchange and bind to it.

use super::{ExchangeName, UserName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A restriction of a user on one exchange. A user without one is not restricted there, so the loss of a topic
/// permission widens access.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct TopicPermission {
    /// The user.
    pub user: UserName,
    /// The exchange. Only exchanges of type `topic` enforce it.
    pub exchange: ExchangeName,
    /// The pattern of the routing keys that the user may publish.
    pub write: String,
    /// The pattern of the routing keys that the user may bind.
    pub read: String,
}

impl fmt::Display for TopicPermission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "topic permission of user {} on exchange {}", self.user, self.exchange)
    }
}
