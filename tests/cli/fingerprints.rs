//! Tests that the fingerprint of a plan covers its changes and no other parts of the spec.

use crate::support::Topo;

/// The definitions of a broker with two queues.
const LIVE: &str = r#"{"rabbit_version": "4.0.5", "rabbitmq_version": "4.0.5", "vhosts": [{"name": "shop"}], "policies": [],
    "exchanges": [], "bindings": [], "queues": [
    {"name": "base", "vhost": "shop", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "classic"}},
    {"name": "more", "vhost": "shop", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "classic"}}]}"#;

const NEW: &str = "version: 1\nvhost: shop\nqueues: {base: {type: classic}, new: {type: classic}}\n";

fn fingerprint_of(live: &str, spec: &str, flags: &[&str]) -> String {
    let topo = Topo::offline().file("live.json", live).file("topology.yaml", spec);
    let plan = ["plan", "--against", "live.json", "--format", "json"].into_iter().chain(flags.iter().copied());
    let plan = topo.run(plan).expect_code(0).plan();
    plan["fingerprint"].as_str().unwrap().to_owned()
}

fn fingerprint(spec: &str) -> String {
    fingerprint_of(LIVE, spec, &[])
}

#[test]
fn unchanged_objects_do_not_affect_the_fingerprint() {
    let new = fingerprint(NEW);
    assert_eq!(new, fingerprint(NEW), "deterministic");
    let declared = NEW.replace("queues: {", "queues: {more: {type: classic}, ");
    assert_eq!(new, fingerprint(&declared), "an unchanged object");
    assert_eq!(new, fingerprint(&NEW.replace("queues:", "owns: [base]\nqueues:")), "ownership without an effect");
    let other = "version: 1\nvhost: other\nqueues: {q: {type: classic}}\n";
    let live = LIVE.replace(r#"[{"name": "shop"}]"#, r#"[{"name": "shop"}, {"name": "other"}]"#).replace(
        r#"{"name": "base""#,
        r#"{"name": "q", "vhost": "other", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "classic"}},
           {"name": "base""#,
    );
    assert_eq!(new, fingerprint_of(&live, &format!("{NEW}---\n{other}"), &[]), "an unchanged vhost");
}

/// Another exchange, which the spec does not declare, routes messages to the new binding.
#[test]
fn routing_changes_do_not_affect_the_fingerprint() {
    let exchange = |name: &str| {
        format!(
            r#"{{"name": "{name}", "vhost": "shop", "type": "fanout", "durable": true, "auto_delete": false, "internal": false, "arguments": {{}}}}"#
        )
    };
    let live =
        LIVE.replace(r#""exchanges": []"#, &format!(r#""exchanges": [{}, {}]"#, exchange("e"), exchange("other")));
    let bound = live.replace(
        r#""bindings": []"#,
        r#""bindings": [{"source": "other", "vhost": "shop", "destination": "e", "destination_type": "exchange", "routing_key": "", "arguments": {}}]"#,
    );
    let spec = "version: 1\nvhost: shop\nexchanges: {e: {type: fanout}}\nqueues: {base: {type: classic, bindings: [{exchange: e}]}}\n";
    let plan = |live: &str| {
        let topo = Topo::offline().file("live.json", live).file("topology.yaml", spec);
        topo.run(["plan", "--against", "live.json", "--format", "json"]).expect_code(0).plan()
    };
    let [alone, reached] = [plan(&live), plan(&bound)];
    assert_ne!(alone["vhosts"][0]["routing"], reached["vhosts"][0]["routing"]);
    assert_eq!(alone["fingerprint"], reached["fingerprint"]);
}

#[test]
fn prune_accepts_kinds_as_a_separate_argument() {
    let spec = NEW.replace("queues:", "owns: ['*']\nqueues:");
    let joined = fingerprint_of(LIVE, &spec, &["--prune=bindings"]);
    assert_eq!(joined, fingerprint_of(LIVE, &spec, &["--prune", "bindings"]));
    assert_ne!(joined, fingerprint_of(LIVE, &spec, &["--prune"]), "queue `more` is pruned");
    // `--prune` accepts a kind as the next argument, but not a path.
    assert_eq!(fingerprint_of(LIVE, &spec, &["--prune"]), fingerprint_of(LIVE, &spec, &["--prune", "topology.yaml"]));
}

#[test]
fn unused_allowance_suggests_the_right_address() {
    let spec = NEW.replace("queues:", "removed: {queues: [more]}\nqueues:");
    let topo = Topo::offline().file("live.json", LIVE).file("topology.yaml", &spec);
    let plan = |allow: &str| topo.run(["plan", "--against", "live.json", "--allow", allow]).expect_code(0).stderr;
    assert_eq!(
        plan("message-loss@queues/shop/mroe"),
        "warning: `--allow message-loss@queues/shop/mroe` has no effect: there is no such hazard at that address; \
         use --allow message-loss@queues/shop/more\n"
    );
    assert_eq!(
        plan("reorder@queues/shop/more"),
        "warning: `--allow reorder@queues/shop/more` has no effect: the plan contains no `reorder` hazard\n"
    );
    assert_eq!(
        plan("message-loss@queues/shop/more:5"),
        "warning: `--allow message-loss@queues/shop/more:5` has a limit, but the number of messages at risk is unknown; \
         use --allow message-loss@queues/shop/more\n"
    );
    for sufficient in ["message-loss@queues/shop/more", "message-loss", "reorder"] {
        assert_eq!(plan(sufficient), "", "{sufficient}");
    }
    // topo evaluates several allowances together: one of them allows the hazard, or topo reports the one that is
    // closest.
    let both = |first: &str, second: &str| {
        let line = ["plan", "--against", "live.json", "--allow", first, "--allow", second];
        topo.run(line).expect_code(0).stderr
    };
    assert_eq!(both("message-loss@queues/shop/more:5", "message-loss@queues/shop/more"), "");
    let told = both("message-loss@queues/shop/more:7", "message-loss@queues/shop/*:5");
    assert!(told.contains("`--allow message-loss@queues/shop/more:7` has a limit"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn every_change_affects_the_fingerprint() {
    let new = fingerprint(NEW);
    let others = [
        ("another type", fingerprint(&NEW.replace("new: {type: classic}", "new: {type: quorum}"))),
        ("another name", fingerprint(&NEW.replace("new:", "newer:"))),
        ("one more", fingerprint(&NEW.replace("new:", "newer: {type: classic}, new:"))),
        ("another vhost", fingerprint(&NEW.replace("vhost: shop", "vhost: other"))),
        ("a binding", fingerprint(&NEW.replace("new: {", "new: {bindings: [{exchange: amq.topic, routingKey: a}], "))),
        ("a deletion", fingerprint(&NEW.replace("queues:", "removed: {queues: [more]}\nqueues:"))),
        ("an option", fingerprint_of(LIVE, NEW, &["--prune"])),
        // The current values affect the fingerprint, too.
        ("a current vhost", fingerprint(&NEW.replace("vhost: shop", "vhost: {name: shop, description: the shop}"))),
        ("a current value", fingerprint(&NEW.replace("vhost: shop", "vhost: {name: shop, description: a shop}"))),
    ];
    for (index, (what, print)) in others.iter().enumerate() {
        assert_ne!(new, *print, "{what}");
        assert!(others[..index].iter().all(|(_, other)| other != print), "{what}");
    }
}

/// The step of the policy is the same for any number of governed queues, but its effects differ.
#[test]
fn effects_of_a_step_affect_the_fingerprint() {
    let policy = "policies: {limits: {pattern: \"^(more|new)$\", definition: {maxLength: 100}}}\n";
    let spec = |queues: &str| format!("version: 1\nvhost: shop\nqueues: {{{queues}}}\n{policy}");
    let alone = fingerprint(&spec("base: {type: classic}"));
    let governed = fingerprint(&spec("base: {type: classic}, more: {type: classic}"));
    assert_ne!(alone, governed);
    // Unmanaged queues do not affect the fingerprint.
    let without = LIVE.replace(r#""name": "more""#, r#""name": "much""#);
    assert_eq!(alone, fingerprint_of(&without, &spec("base: {type: classic}"), &[]));
}
