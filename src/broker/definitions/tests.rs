//! Tests for reading definitions files.

use super::*;
use crate::model::{RecordId, Vhost};

const FILE: &str = r#"{"rabbit_version":"3.10.8","vhosts":[{"name":"shop"}],
        "queues":[{"name":"q","vhost":"shop","durable":true,"auto_delete":false,"arguments":{}},
                  {"name":"other","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}],
        "exchanges":[{"name":"e","vhost":"shop","type":"topic","durable":true,"auto_delete":false,"internal":false,"arguments":{}}],
        "bindings":[{"source":"e","vhost":"shop","destination":"q","destination_type":"queue","routing_key":"a","arguments":{}}],
        "policies":[]}"#;

#[test]
fn vhost_of_a_file_is_read() {
    let snapshot = read(FILE, &"shop".into(), None).unwrap();
    assert_eq!(snapshot.profile.version.to_string(), "3.10.8");
    assert_eq!(snapshot.topology.queues.len(), 1);
    assert_eq!(snapshot.topology.bindings.len(), 1);
    assert!(snapshot.topology.settings.is_some());
}

#[test]
fn vhost_without_entries_is_missing() {
    assert!(read(FILE, &"elsewhere".into(), None).unwrap().topology.settings.is_none());
    for other in ["{}", r#"{"name":"shop","version":"1.0.0"}"#, r#"{"users":[],"permissions":[]}"#] {
        assert!(matches!(read(other, &"shop".into(), None), Err(DefinitionsError::Nothing)));
        assert!(matches!(vhosts(other), Err(DefinitionsError::Nothing)));
    }
}

#[test]
fn parameters_become_records_or_other_objects() {
    let parameters = r#""parameters":[
            {"component":"operator_policy","vhost":"shop","name":"cap",
             "value":{"pattern":"^q","apply-to":"queues","priority":1,"definition":{"max-length":5}}},
            {"component":"operator_policy","vhost":"/","name":"other","value":{"pattern":"","definition":{}}},
            {"component":"shovel","vhost":"shop","name":"s","value":{}},
            {"component":"shovel","vhost":"shop","name":"own","value":{"src-delete-after":"queue-length"}},
            {"component":"federation-upstream","vhost":"shop","name":"u","value":{}},
            {"component":"vhost-limits","vhost":"shop","name":"limits","value":{"max-queues":5}},
            {"component":"odd","vhost":"shop","name":"o","value":1}],"policies""#;
    let repeated =
        r#""queues":[{"name":"q","vhost":"shop","durable":true,"auto_delete":false,"arguments":{"x-max-length":1}},"#;
    let file = FILE.replace("\"policies\"", parameters).replace("\"queues\":[", repeated);
    let snapshot = read(&format!("\u{feff}{file}"), &"shop".into(), None).unwrap();
    let operator_policies = snapshot.topology.operator_policies();
    let cap = &operator_policies[&"cap".into()];
    assert_eq!((cap.pattern.as_str(), operator_policies.len()), ("^q", 1));
    assert_eq!(cap.definition["max-length"], 5.into());
    let limit = RecordId { kind: RecordKind::VhostLimit, key: vec!["max-queues".to_owned()] };
    assert_eq!(snapshot.topology.records[&limit].limit(), Some(5));
    let names: Vec<String> = snapshot.topology.records.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["operator policy cap", "vhost limit max-queues", "shovel s", "parameter odd o"]);
    let others: Vec<_> =
        snapshot.unsupported_objects.iter().map(|(kind, names)| format!("{kind}: {names:?}")).collect();
    assert_eq!(
        others,
        [
            r#"repeated queue: ["q"]"#,
            r#"shovel: ["own"]"#,
            // The upstream has no URI.
            r#"upstream: ["u"]"#,
        ]
    );
    assert!(snapshot.topology.queues[&"q".into()].arguments.contains_key("x-max-length"));
}

#[test]
fn unsupported_version_is_refused() {
    let old = FILE.replace("3.10.8", "3.7.28");
    assert!(matches!(read(&old, &"shop".into(), None), Err(DefinitionsError::TooOld { .. })));
    assert!(read(&old, &"shop".into(), Some(BrokerVersion::NEWEST_KNOWN)).is_ok());
}

#[test]
fn missing_fields_have_the_defaults_of_the_version() {
    let bare = |list: &str| format!("{{\n \"vhosts\": [{{\"name\": \"/\"}}],\n {list}\n}}");
    let imported = |list: &str, version: &str| {
        read(&bare(list), &"/".into(), Some(version.parse().unwrap()))
            .map(|snapshot| snapshot.topology)
            .map_err(|error| error.to_string())
    };
    let queue = r#""queues": [{"name": "q", "vhost": "/"}]"#;
    let missing = |field: &str, version: &str, since: &str| {
        format!(
            "queue `q` (line 3): missing field `{field}`, which has no default in RabbitMQ {version} (only in {since} and later)"
        )
    };
    assert_eq!(imported(queue, "3.8.9").unwrap_err(), missing("arguments", "3.8.9", "3.10"));
    assert_eq!(imported(queue, "3.10.8").unwrap_err(), missing("durable", "3.10.8", "4.0"));
    let read_queue = imported(queue, "4.0.5").unwrap().queues[&"q".into()].clone();
    assert!(read_queue.durable && !read_queue.auto_delete && read_queue.arguments.is_empty());
    let exchange = r#""exchanges": [{"name": "e", "vhost": "/", "type": "topic", "durable": true, "arguments": {}}]"#;
    assert!(!imported(exchange, "3.8.9").unwrap().exchanges[&"e".into()].auto_delete);
    let binding = r#""bindings": [{"source": "e", "vhost": "/", "destination": "q", "destination_type": "queue"}]"#;
    assert_eq!(imported(binding, "4.3.6").unwrap_err(), "binding `e → q` (line 3): missing field `routing_key`");
    let odd = r#""queues": [{"name": "q", "vhost": "/", "durable": "yes"}]"#;
    let expected = "queue `q` (line 3): invalid type: string \"yes\", expected a boolean";
    assert_eq!(imported(odd, "4.3.6").unwrap_err(), expected);
    assert_eq!(imported(r#""queues": [{}]"#, "4.3.6").unwrap_err(), "queue (line 3): missing field `name`");
}

#[test]
fn objects_of_an_unlisted_vhost_are_read() {
    let names: Vec<String> = vhosts(FILE).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["/", "shop"]);
    let snapshot = read(FILE, &"/".into(), None).unwrap();
    assert_eq!(snapshot.topology.queues.len(), 1);
    assert_eq!(snapshot.topology.settings, Some(Vhost::default()));
}

#[test]
fn vhosts_of_parameters_and_permissions_are_found() {
    let entries = r#""permissions":[{"user":"u","vhost":"p","configure":"","write":"","read":""}],
            "topic_permissions":[{"user":"u","vhost":"t","exchange":"e","write":"","read":""}],
            "parameters":[{"component":"shovel","vhost":"s","name":"n","value":{}}],"policies""#;
    let file = FILE.replace("\"policies\"", entries);
    let names: Vec<String> = vhosts(&file).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["/", "p", "s", "shop", "t"]);
    for (vhost, record) in [("p", "permission u"), ("t", "topic permission u e"), ("s", "shovel n")] {
        let snapshot = read(&file, &vhost.into(), None).unwrap();
        assert_eq!(snapshot.topology.settings, Some(Vhost::default()), "{vhost}");
        let records: Vec<String> = snapshot.topology.records.keys().map(ToString::to_string).collect();
        assert_eq!(records.join(", "), record, "{vhost}");
        assert_eq!(snapshot.unsupported_objects, BTreeMap::new());
    }
}

#[test]
fn errors_for_vhosts_and_operator_policies_contain_object_and_line() {
    let error = |parameters: &str, vhosts: &str| {
        let file = format!("{{\n\"vhosts\": [\n{vhosts}],\n\"parameters\": [\n{parameters}]}}");
        read(&file, &"/".into(), None).unwrap_err().to_string()
    };
    let root = r#"{"name": "/"}"#;
    let policy = |value: &str| format!(r#"{{"component":"operator_policy","vhost":"/","name":"cap","value":{value}}}"#);
    for (value, problem) in [
        ("{}", "missing field `pattern`"),
        (r#"{"pattern": "", "definition": 1}"#, "invalid type: integer `1`, expected a JSON object of arguments"),
        ("[]", "its value is not an object"),
    ] {
        let expected = format!("parameter `operator_policy → cap` (line 5): {problem}");
        assert_eq!(error(&policy(value), root), expected);
    }
    assert_eq!(error("", &format!("{root},\n{{\"nam\": 1}}")), "vhost (line 4): missing field `name`");
    assert_eq!(
        error("", &format!("{root},\n{{\"name\": \"x\", \"description\": 1}}")),
        "vhost `x` (line 4): invalid type: integer `1`, expected a string"
    );
    assert_eq!(vhosts("{\"vhosts\": [\n\n{}]}").unwrap_err().to_string(), "vhost (line 3): missing field `name`");
}

#[test]
fn deeply_nested_parameters_are_read() {
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let parameter = |component: &str, value: &str| {
        format!(r#"{{"component":"{component}","vhost":"shop","name":"p","value":{value}}}"#)
    };
    let policy = format!(r#"{{"pattern":"^q","definition":{{"max-length":{deep}}}}}"#);
    let limits = format!(r#"{{"max-queues":{deep}}}"#);
    let parameters =
        [("shovel", deep.as_str()), ("odd", &deep), ("operator_policy", &policy), ("vhost-limits", &limits)];
    let parameters = parameters.map(|(component, value)| parameter(component, value)).join(",");
    let file = FILE.replace("\"policies\"", &format!("\"parameters\":[{parameters}],\"policies\""));
    let snapshot = read(&file, &"shop".into(), None).unwrap();
    // The record stores the whole definition as one value.
    let cut = snapshot.topology.clone().remove_truncated();
    assert_eq!(
        cut.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["operator policy p", "vhost limit max-queues", "parameter odd p"]
    );
    assert_eq!(snapshot.unsupported_objects["shovel"], ["p"]);
}

#[test]
fn deeply_nested_arguments_are_read() {
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let file = FILE.replace("\"arguments\":{}}]", &format!("\"arguments\":{{\"x-deep\":{deep}}}}}]"));
    let snapshot = read(&file, &"shop".into(), None).unwrap();
    assert!(snapshot.topology.bindings.iter().all(|binding| binding.arguments["x-deep"].is_truncated()));
}
