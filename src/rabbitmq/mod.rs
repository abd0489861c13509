//! Predicts the behavior of RabbitMQ by version: refused declarations, the policy that governs an object, effective
//! settings, and the routes of messages. The predictions are pure functions and do not require a broker.
//!
//! The differential tests in `tests/live` compare most of these predictions with the behavior of real brokers.
//! [`plan::verdict`](crate::plan::verdict) predicts the result of a *re*declaration from the same table of known
//! arguments.

pub mod binding_key;
mod canceled_consumers;
pub mod declare;
pub mod effective;
pub mod governing;
pub mod no_effect;
pub mod pattern;
pub mod policy_keys;
pub mod profile;
pub mod routing;
mod wiring;

pub use binding_key::is_reproducible_over_http;
pub use canceled_consumers::{may_subscribe_again, needs_pause};
pub use declare::{
    Ends, Refusal, binding_refusals, plugin_keys, policy_keys, refusals, vhost_change_refusals, with_default_type,
};
pub use effective::{
    ActivePolicies, Effective, EffectiveSettings, OverflowBehavior, Source, effective_definition, redelivery_delays,
};
pub use governing::{Governed, Governing, MatchingPolicy, Named, Policies};
pub use no_effect::NoEffect;
pub use pattern::Pattern;
pub use policy_keys::{Precedence, precedence};
pub use profile::BrokerProfile;
pub use profile::predeclared_type;
pub use routing::Routing;
pub use wiring::{WIRING_KEYS, dead_lettering, has_dead_letter_name, queue_wiring, wiring_policy};
