//! Declares an exchange as an application does.

use lapin::options::ExchangeDeclareOptions;
use topo::plan::{Action, request};

use super::{Case, Exchange, Road, Wrong, model, reason};
use crate::live::differential::queues::{Width, on_the_wire};
use crate::support::Argument;

/// Every n-th case is also declared over AMQP.
pub(super) const ONE_OVER_AMQP: usize = 5;

/// Declares an exchange over AMQP. The result must be that of HTTP, with the same text if there is one. Each
/// declaration has a separate connection, because an unknown type closes the connection.
pub(super) fn declare(road: &Road<'_>, name: &str, case: &Case) -> Result<&'static str, Wrong> {
    // The exchange that HTTP accepted already exists under its own name.
    let name = if case.live.is_some() { name.to_owned() } else { format!("{name}-amqp") };
    let exchange: Exchange = model(&case.desired);
    let action = Action::declare_exchange(&name.as_str().into(), &exchange);
    let options = ExchangeDeclareOptions {
        durable: case.desired["durable"] == true,
        auto_delete: case.desired["auto_delete"] == true,
        internal: case.desired["internal"] == true,
        ..Default::default()
    };
    let table = case.desired["arguments"].as_object().unwrap();
    let arguments: Vec<(&str, Argument)> =
        table.iter().map(|(name, value)| (name.as_str(), on_the_wire(value, Width::Long))).collect();
    let kind = case.desired["type"].as_str().unwrap();
    let declared = road.vhost.amqp().declare_exchange_as(&name, kind, options, &arguments);
    let answer = road.send(&request(&road.vhost.name().into(), &action).expect("a declaration is a request"));
    let reply = reason(&answer);
    match (declared, answer.is_success()) {
        (Ok(()), true) => Ok("over AMQP: taken"),
        (Err(text), false) if answer.status != 400 || !text.starts_with("PRECONDITION_FAILED") => {
            // For a crash or a closed connection, the error text differs.
            Ok("over AMQP: refused")
        }
        (Err(text), false) if text == format!("PRECONDITION_FAILED - {reply}") => Ok("over AMQP: refused"),
        (declared, _) => {
            let text = format!("AMQP says {declared:?}, HTTP {} {reply}", answer.status);
            Err(Wrong::new("over AMQP", text))
        }
    }
}
