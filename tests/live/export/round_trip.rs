//! Performs a round trip: exports a broker, applies the spec in a new vhost, and expects the same state and the same
//! export.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use topo::model::Glob;

use crate::support::{Topo, Vhost};

/// Returns the output of `topo export` for a vhost.
pub(crate) fn exported(vhost: &Vhost<'_>) -> String {
    let output = Topo::new(vhost).run(["export", "--vhost", "{vhost}", "--quiet"]).expect_code(0);
    assert_eq!(output.stderr, "", "{output}");
    output.stdout
}

/// Returns a spec without its comments, which depend on unmanaged objects.
pub(crate) fn without_comments(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty()).collect()
}

/// Returns lines of a spec without the list `ignore`, which depends on objects that are not exported.
fn without_ignore(lines: Vec<&str>) -> Vec<&str> {
    let mut is_in_list = false;
    let mut is_other = |line: &&str| {
        is_in_list = *line == "ignore:" || is_in_list && line.starts_with("  - ");
        !is_in_list
    };
    lines.into_iter().filter(|line| is_other(line)).collect()
}

/// Expects that a plan of this spec is empty.
pub(crate) fn plans_to_nothing(vhost: &Vhost<'_>, text: &str) {
    let topo = Topo::new(vhost).file("topology.yaml", text);
    let plan = topo.run(["plan", "--detailed-exitcode"]);
    assert!(plan.code == Some(0) && plan.stdout.contains("No changes."), "{text}\n{plan}");
}

/// Performs a complete round trip, and returns the exported spec.
pub(crate) fn round_trip(vhost: &Vhost<'_>) -> String {
    let text = exported(vhost);
    plans_to_nothing(vhost, &text);
    let fresh = vhost.node().vhost("fresh");
    // External objects must exist first.
    let spec: Value = serde_yaml::from_str(&text).unwrap();
    for (name, _) in spec["exchanges"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, it)| it["external"] == true && it["optional"] != true)
    {
        let live = vhost.exchange(name);
        let fields =
            ["type", "durable", "auto_delete", "internal", "arguments"].map(|key| (key.to_owned(), live[key].clone()));
        let body = Value::Object(fields.into_iter().collect());
        vhost.http().put(&fresh.path("exchanges", &[name]), &body).expect_status(201);
    }
    let elsewhere = text.replacen(vhost.name(), fresh.name(), 1);
    let apply = Topo::new(&fresh).file("topology.yaml", &elsewhere).run(["apply", "--yes"]);
    assert!(apply.code == Some(0), "{text}\n{apply}");
    let ignored = spec["ignore"].as_array().into_iter().flatten().map(|glob| Glob::new(glob.as_str().unwrap()));
    let ignored: Vec<Glob> = ignored.collect();
    let (before, after) = (definitions(vhost, &ignored), definitions(&fresh, &ignored));
    assert_eq!(before, after, "{text}");
    let again = exported(&fresh).replacen(fresh.name(), vhost.name(), 1);
    if text.starts_with("# Not exported") {
        // The new vhost has no omitted objects, and comments depend on all objects.
        let lines = |text| without_ignore(without_comments(text));
        assert_eq!(lines(&again), lines(&text), "{text}");
    } else {
        assert_eq!(again, text);
    }
    text
}

/// Returns the broker's definitions of a vhost: durable objects without the name of the vhost, and the internal
/// exchanges that newer brokers omit. Omits objects that the export leaves out and ignores.
fn definitions(vhost: &Vhost<'_>, ignored: &[Glob]) -> Value {
    let all = vhost.http().get(&vhost.path("definitions", &[])).expect_status(200);
    let list = |kind: &str| all[kind].as_array().cloned().unwrap_or_default();
    let is_ignored = |object: &Value| ignored.iter().any(|glob| glob.matches(object["name"].as_str().unwrap()));
    let lasts = |object: &Value| object["durable"] == true && object["auto_delete"] == false && !is_ignored(object);
    let mut exchanges = list("exchanges");
    let field = |it: &Value, name: &str| (name.to_owned(), it[name].clone());
    let fields = ["name", "type", "durable", "auto_delete", "internal", "arguments"];
    let internal = vhost.list("exchanges").into_iter().filter(|it| it["internal"] == true);
    exchanges.retain(|it| it["internal"] != true);
    exchanges.extend(internal.map(|it| Value::Object(fields.iter().map(|name| field(&it, name)).collect())));
    exchanges.retain(lasts);
    let mut queues = list("queues");
    queues.retain(lasts);
    let names = |list: &[Value]| list.iter().map(|it| it["name"].clone().to_string()).collect::<BTreeSet<_>>();
    let (queue_names, exchange_names) = (names(&queues), names(&exchanges));
    let is_there = |name: &Value, names: &BTreeSet<String>| {
        name.as_str().is_some_and(|name| name.starts_with("amq.")) || names.contains(&name.to_string())
    };
    let mut bindings = list("bindings");
    bindings.retain(|it| {
        let ends = if it["destination_type"] == "queue" { &queue_names } else { &exchange_names };
        is_there(&it["source"], &exchange_names) && is_there(&it["destination"], ends)
    });
    let sorted = |mut list: Vec<Value>| {
        list.iter_mut().for_each(|it| drop(it.as_object_mut().unwrap().remove("vhost")));
        list.sort_by_key(ToString::to_string);
        list
    };
    json!({
        "queues": sorted(queues), "exchanges": sorted(exchanges), "bindings": sorted(bindings),
        "policies": sorted(list("policies")),
    })
}
