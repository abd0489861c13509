//! Renders configurations for rascal and for `@golevelup/nestjs-rabbitmq`, which both use amqplib.

use super::advice::{on_failure, without_declaration};
use super::literal::{Language, arguments, comment, json_arguments, key, string};
use crate::contract::{ClientQueue, ClientVhost, OnFailure};
use crate::model::known_clients::Framework;
use crate::model::printable::clean_json;
use crate::render::style::clean;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Renders the vhosts as a rascal configuration. With this configuration, rascal only checks that the queues exist.
/// Also returns notes, because JSON has no comments.
pub(super) fn rascal(vhosts: &[ClientVhost]) -> (String, Vec<String>) {
    let mut notes = Vec::new();
    if let Some(option) = without_declaration(Framework::Rascal) {
        notes.push(format!("rascal only checks that the queues exist; to skip the check: {option}"));
    }
    let mut all = Map::new();
    for vhost in vhosts {
        let mut queues = Map::new();
        for ClientQueue { declaration, on_failure: failure, .. } in &vhost.queues {
            let mut options = json!({ "durable": declaration.durable });
            if declaration.auto_delete {
                options["autoDelete"] = json!(true);
            }
            options["arguments"] = json_arguments(&declaration.arguments);
            let queue = json!({ "assert": false, "check": true, "options": options });
            queues.insert(declaration.queue.to_string(), queue);
            if let Some(kind) = failure {
                let name = clean(declaration.queue.as_str());
                notes.push(format!("{name}: {}", on_failure(Framework::Rascal, *kind)));
            }
        }
        all.insert(vhost.vhost.to_string(), json!({ "queues": queues }));
    }
    let document = Value::Object(Map::from_iter([("vhosts".to_owned(), Value::Object(all))]));
    (clean_json(format!("{document:#}\n")), notes)
}

/// Writes the `handlers` option of a NestJS module. A handler without an exchange creates no binding.
pub(super) fn nestjs(text: &mut String, vhost: &ClientVhost) {
    let typescript = |text: &str| string(text, Language::TypeScript);
    comment(text, "// ", "Use the handlers with RabbitMQModule.forRoot({ handlers }) and @RabbitSubscribe({ name }).");
    let is_rejected = vhost.queues.iter().any(|queue| queue.on_failure == Some(OnFailure::Reject));
    let import = if is_rejected { "MessageHandlerErrorBehavior, RabbitMQHandlers" } else { "RabbitMQHandlers" };
    let _ = writeln!(text, "import {{ {import} }} from '@golevelup/nestjs-rabbitmq';\n");
    text.push_str("export const handlers: RabbitMQHandlers = {\n");
    for ClientQueue { declaration, on_failure: failure, .. } in &vhost.queues {
        let name = declaration.queue.as_str();
        let _ = writeln!(text, "  {}: {{\n    queue: {},", key(name, Language::TypeScript), typescript(name));
        text.push_str("    createQueueIfNotExists: false,\n    queueOptions: {\n");
        let _ = writeln!(text, "      durable: {},", declaration.durable);
        if declaration.auto_delete {
            text.push_str("      autoDelete: true,\n");
        }
        if !declaration.arguments.is_empty() {
            text.push_str("      arguments: {\n");
            arguments(text, &declaration.arguments, Language::TypeScript, 8);
            text.push_str("      },\n");
        }
        text.push_str("    },\n");
        if let Some(kind) = failure {
            comment(text, "    // ", on_failure(Framework::NestJs, *kind));
            match kind {
                OnFailure::Reject => text.push_str("    errorBehavior: MessageHandlerErrorBehavior.NACK,\n"),
                OnFailure::Requeue => {
                    text.push_str("    errorHandler: (channel, message) => channel.reject(message, true),\n")
                }
                OnFailure::Publish => {}
            }
        }
        text.push_str("  },\n");
    }
    text.push_str("};\n");
}
