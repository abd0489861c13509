//! Tests the configuration of each framework. `tests/cli/contract.rs` compares complete outputs, and
//! `tests/live/clients.rs` evaluates them with real clients.

use super::*;
use crate::contract::{ClientQueue, Declaration};
use crate::model::{ArgumentValue, QueueType};

fn declaration(name: &str, durable: bool, arguments: &[(&str, ArgumentValue)]) -> Declaration {
    let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Declaration { queue: name.into(), durable, auto_delete: !durable, exclusive: false, arguments }
}

fn vhost(declarations: Vec<Declaration>) -> ClientVhost {
    let declared = declarations.iter().map(|it| (it.queue.clone(), it.clone())).collect();
    let of = |declaration| ClientQueue { declaration, route: None, on_failure: None };
    let queues = declarations.into_iter().map(of).collect();
    ClientVhost { vhost: "v".into(), default_queue_type: None, queues, declared }
}

fn config(framework: Framework, vhost: ClientVhost) -> String {
    client_config(framework, &[vhost], "t.yaml").text
}

fn own(queue: &str, kind: &str) -> Vec<(&'static str, ArgumentValue)> {
    let key = format!("{queue}.XQ");
    vec![
        ("x-dead-letter-exchange", "".into()),
        ("x-dead-letter-routing-key", key.into()),
        ("x-queue-type", kind.into()),
    ]
}

#[test]
fn names_of_generated_identifiers_are_unique() {
    let odd = || ["a.b", "a-b", "1", "é"].map(|name| declaration(name, true, &[])).to_vec();
    let java = config(Framework::Spring, vhost(odd()));
    for method in ["Queue aBQueue()", "Queue aBQueue_2()", "Queue queue1()", "Queue queue()"] {
        assert!(java.contains(method), "{method}: {java}");
    }
    let yaml = config(Framework::Symfony, vhost(odd()));
    for transport in ["\"a_b\":\n", "\"a_b_2\":\n", "\"queue_1\":\n", "\"queue__\":\n"] {
        assert!(yaml.contains(transport), "{transport}: {yaml}");
    }
}

#[test]
fn transient_queues_are_declared_as_transient() {
    for (framework, expected) in [
        (Framework::Celery, "        durable=False,\n        auto_delete=True,\n"),
        (Framework::FastStream, "        durable=False,\n        auto_delete=True,\n"),
        (Framework::Rascal, "\"durable\": false,\n            \"autoDelete\": true,"),
        (Framework::NestJs, "      durable: false,\n      autoDelete: true,\n"),
        (Framework::Symfony, "flags: 16\n"),
        (Framework::Spring, "QueueBuilder.nonDurable(\"q\")\n            .autoDelete()"),
        (Framework::Dramatiq, "# Warning: q: the broker refuses the declaration (406)."),
    ] {
        let text = config(framework, vhost(vec![declaration("q", false, &[])]));
        assert!(text.contains(expected), "{framework:?}: {text}");
    }
}

#[test]
fn dramatiq_uses_its_own_arguments_if_they_match_the_spec() {
    let xq = || declaration("q.XQ", true, &[("x-message-ttl", 604_800_000.into()), ("x-queue-type", "classic".into())]);
    let all =
        || vec![declaration("q", true, &own("q", "classic")), declaration("q.DQ", true, &own("q", "classic")), xq()];
    let text = config(Framework::Dramatiq, vhost(all()));
    assert!(text.ends_with("import RabbitmqBroker\n\nbroker = RabbitmqBroker()\n"), "{text}");
    assert!(!text.contains("Warning") && !text.contains("not in the spec"), "{text}");
    // The broker would add the vhost's default queue type to a declaration without `x-queue-type`.
    let text = config(Framework::Dramatiq, ClientVhost { default_queue_type: Some(QueueType::Quorum), ..vhost(all()) });
    assert!(text.contains("class SpecBroker(RabbitmqBroker):"), "{text}");
    let mut priority = own("q", "classic");
    priority.push(("x-max-priority", 5.into()));
    let text = config(Framework::Dramatiq, vhost(vec![declaration("q", true, &priority)]));
    assert!(text.ends_with("broker = RabbitmqBroker(max_priority=5)\n"), "{text}");
    let other = vec![declaration("q", true, &priority), declaration("q.DQ", true, &own("q", "classic")), xq()];
    let text = config(Framework::Dramatiq, vhost(other));
    assert!(text.contains("Warning: q.DQ: the broker refuses the declaration (406)."), "{text}");
}

#[test]
fn names_in_comments_cannot_end_the_comment() {
    let name = "q\nimport os";
    for framework in Framework::ALL {
        let text = config(framework, vhost(vec![declaration(name, true, &[(name, name.into())])]));
        assert!(!text.contains("\nimport os"), "{text}");
    }
}

#[test]
fn names_that_a_library_refuses_have_a_warning() {
    let has_warning = |framework, name| {
        config(framework, vhost(vec![declaration(name, true, &[])])).contains("cannot use this queue")
    };
    for (name, faststream, dramatiq) in
        [("a.b-c_1", false, false), ("a b/c", false, true), ("1a", false, true), ("é", true, true), ("a$", true, true)]
    {
        assert_eq!(has_warning(Framework::FastStream, name), faststream, "{name}");
        assert_eq!(has_warning(Framework::Dramatiq, name), dramatiq, "{name}");
        assert!(!has_warning(Framework::Celery, name), "{name}");
    }
}
