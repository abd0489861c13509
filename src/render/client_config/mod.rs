//! Renders the queue configuration for a client framework: `topo contract --for`.
//!
//! The configuration declares no exchanges or bindings, because topo declares them. If the framework can use a queue
//! without declaring it, the configuration sets the corresponding option, or names it in a comment or note.

mod advice;
mod dramatiq;
mod javascript;
mod literal;
mod python;
mod spring;
mod symfony;
#[cfg(test)]
mod tests;

use super::style::clean;
use crate::contract::ClientVhost;
use crate::model::known_clients::Framework;
use advice::without_declaration;
use literal::comment;

/// The configuration of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The configuration.
    pub text: String,
    /// Notes for the user. Empty if the format of the configuration supports comments.
    pub notes: Vec<String>,
}

/// Renders the queue configuration for each vhost. `specs` contains the paths of the specs, which a
/// comment shows.
pub fn client_config(framework: Framework, vhosts: &[ClientVhost], specs: &str) -> ClientConfig {
    if framework == Framework::Rascal {
        let (text, notes) = javascript::rascal(vhosts);
        return ClientConfig { text, notes };
    }
    let texts: Vec<String> = vhosts.iter().map(|vhost| of_vhost(framework, vhost, specs)).collect();
    ClientConfig { text: texts.join("\n"), notes: Vec::new() }
}

fn of_vhost(framework: Framework, vhost: &ClientVhost, specs: &str) -> String {
    let mark = match framework {
        Framework::NestJs | Framework::Spring | Framework::Rascal => "// ",
        Framework::Celery | Framework::Dramatiq | Framework::FastStream | Framework::Symfony => "# ",
    };
    let mut text = String::new();
    let name = clean(vhost.vhost.as_str());
    comment(&mut text, mark, &format!("The queues in vhost {name}, as topo declares them ({}).", clean(specs)));
    if let Some(option) = without_declaration(framework) {
        comment(&mut text, mark, &format!("To use these queues without declaring them: {option}."));
    }
    match framework {
        Framework::Celery => python::celery(&mut text, vhost),
        Framework::FastStream => python::faststream(&mut text, vhost),
        Framework::Dramatiq => dramatiq::dramatiq(&mut text, vhost),
        Framework::NestJs => javascript::nestjs(&mut text, vhost),
        Framework::Symfony => symfony::symfony(&mut text, vhost),
        Framework::Spring => spring::spring(&mut text, vhost),
        Framework::Rascal => {}
    }
    text
}
