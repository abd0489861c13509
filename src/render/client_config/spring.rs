//! Renders Spring AMQP beans.

use super::advice::on_failure;
use super::literal::{Language, comment, string, unused, value};
use crate::contract::{ClientQueue, ClientVhost};
use crate::model::ArgumentValue;
use crate::model::known_clients::Framework;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Writes a configuration class with one bean for each queue. By default, `RabbitAdmin` declares the queues of all
/// beans, and listener containers declare their queues passively.
pub(super) fn spring(text: &mut String, vhost: &ClientVhost) {
    comment(text, "// ", "To use the queues without declaring them, set spring.rabbitmq.dynamic to false.");
    let uses = |condition: fn(&ArgumentValue) -> bool| {
        let mut values = vhost.queues.iter().flat_map(|queue| queue.declaration.arguments.values());
        values.any(|value| contains(value, condition))
    };
    let has_list = uses(|value| matches!(value, ArgumentValue::List(_)));
    let has_table = uses(|value| matches!(value, ArgumentValue::Table(_)));
    for (class, is_used) in [("List", has_list), ("Map", has_table)] {
        if is_used {
            let _ = writeln!(text, "import java.util.{class};");
        }
    }
    for class in ["core.Queue", "core.QueueBuilder"] {
        let _ = writeln!(text, "import org.springframework.amqp.{class};");
    }
    for class in ["Bean", "Configuration"] {
        let _ = writeln!(text, "import org.springframework.context.annotation.{class};");
    }
    text.push_str("\n@Configuration\nclass TopologyQueues {\n");
    let mut used = BTreeSet::new();
    for (index, ClientQueue { declaration, on_failure: failure, .. }) in vhost.queues.iter().enumerate() {
        let java = |text: &str| string(text, Language::Java);
        if index > 0 {
            text.push('\n');
        }
        if let Some(kind) = failure {
            comment(text, "    // ", on_failure(Framework::Spring, *kind));
        }
        let queue = declaration.queue.as_str();
        let builder = if declaration.durable { "durable" } else { "nonDurable" };
        let _ = writeln!(text, "    @Bean\n    Queue {}() {{", method(queue, &mut used));
        let _ = write!(text, "        return QueueBuilder.{builder}({})", java(queue));
        if declaration.auto_delete {
            text.push_str("\n            .autoDelete()");
        }
        for (name, argument) in &declaration.arguments {
            let _ = write!(text, "\n            .withArgument({}, {})", java(name), value(argument, Language::Java));
        }
        text.push_str("\n            .build();\n    }\n");
    }
    text.push_str("}\n");
}

/// Returns true if a value or one of its nested values meets the condition.
fn contains(value: &ArgumentValue, condition: fn(&ArgumentValue) -> bool) -> bool {
    condition(value)
        || match value {
            ArgumentValue::List(values) => values.iter().any(|value| contains(value, condition)),
            ArgumentValue::Table(table) => table.values().any(|value| contains(value, condition)),
            ArgumentValue::Null
            | ArgumentValue::Boolean(_)
            | ArgumentValue::Integer(_)
            | ArgumentValue::Float(_)
            | ArgumentValue::Text(_) => false,
        }
}

/// Returns an unused method name, such as `ordersWorkQueue` for queue `orders.work`.
fn method(queue: &str, used: &mut BTreeSet<String>) -> String {
    let mut name = String::new();
    for word in queue.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        let (first, rest) = word.split_at(1);
        let first = if name.is_empty() { first.to_ascii_lowercase() } else { first.to_ascii_uppercase() };
        name.extend([first.as_str(), rest]);
    }
    let name = match name.chars().next() {
        None => "queue".to_owned(),
        Some(c) if c.is_ascii_digit() => format!("queue{name}"),
        Some(_) => format!("{name}Queue"),
    };
    unused(name, used)
}
