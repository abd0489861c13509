//! Tests that resolutions for dead-letter settings match the export: after a resolution is applied, the queue is
//! unchanged.

use serde_json::{Value, json};

use super::equals_export::keys;
use crate::live::export::round_trip::exported;
use crate::support::apply_resolution::{apply_resolution_to, resolutions_of};
use crate::support::{Node, Topo, Vhost, until};

/// The names of the current queues, by the setting that dead-letters their messages.
const LIVE: [&str; 5] = ["nowhere", "argument", "own-policy", "own-policy-key", "other-policy"];

fn make(vhost: &Vhost<'_>, name: &str) {
    let http = vhost.http();
    let arguments = match name {
        "argument" => json!({"x-queue-type": "classic", "x-dead-letter-exchange": "live.dlx"}),
        _ => json!({"x-queue-type": "classic"}),
    };
    http.put(&vhost.path("queues", &[name]), &json!({"durable": true, "arguments": arguments})).expect_status(201);
    let (policy, definition) = match name {
        "own-policy" => (format!("{name}.topo.dead-letter"), json!({"dead-letter-exchange": "live.dlx"})),
        "own-policy-key" => (
            format!("{name}.topo.dead-letter"),
            json!({"dead-letter-exchange": "live.dlx", "dead-letter-routing-key": "k"}),
        ),
        "other-policy" => ("theirs".to_owned(), json!({"dead-letter-exchange": "live.dlx", "max-length": 5})),
        _ => return,
    };
    let policy_body =
        json!({"pattern": format!("^{name}$"), "apply-to": "queues", "priority": 1, "definition": definition});
    http.put(&vhost.path("policies", &[&policy]), &policy_body).expect_status(201);
}

/// Returns the effective dead-letter settings of a queue.
fn wiring(vhost: &Vhost<'_>, name: &str) -> [Value; 2] {
    vhost.amqp().ready(name);
    let queue = vhost.queue(name);
    ["dead-letter-exchange", "dead-letter-routing-key"].map(|key| {
        let by_argument = queue["arguments"][format!("x-{key}")].clone();
        if by_argument.is_null() { queue["effective_policy_definition"][key].clone() } else { by_argument }
    })
}

/// The location at which the spec sets the dead-letter exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Set {
    Key,
    Arguments,
    Default,
    KeyOverDefault,
    ArgumentsOverDefault,
}

impl Set {
    const ALL: [Self; 5] =
        [Self::Key, Self::Arguments, Self::Default, Self::KeyOverDefault, Self::ArgumentsOverDefault];

    fn has_default(self) -> bool {
        matches!(self, Self::Default | Self::KeyOverDefault | Self::ArgumentsOverDefault)
    }
}

fn spec(vhost: &Vhost<'_>, set: Set) -> String {
    let mut text = format!("version: 1\nvhost: {}\n", vhost.name());
    if set.has_default() {
        text += "defaults:\n  deadLetter: dead\n";
    }
    text += "exchanges:\n  live.dlx:\n    type: fanout\nqueues:\n";
    for name in LIVE {
        text += &format!("  {name}:\n    type: classic\n");
        match set {
            Set::Key | Set::KeyOverDefault => text += "    deadLetter: other\n",
            Set::Arguments | Set::ArgumentsOverDefault => {
                text += "    arguments:\n      x-dead-letter-exchange: other.dlx\n";
            }
            Set::Default => {}
        }
    }
    text + "deadLetterQueues:\n  dead:\n    type: classic\n  other:\n    type: classic\n"
}

#[test]
fn applied_resolution_keeps_the_dead_letter_settings() {
    let node = Node::shared();
    for set in Set::ALL {
        let vhost = node.vhost("wired");
        let body = json!({"type": "fanout", "durable": true});
        vhost.http().put(&vhost.path("exchanges", &["live.dlx"]), &body).expect_status(201);
        LIVE.iter().for_each(|name| make(&vhost, name));
        let expected = |name: &str| match name {
            "nowhere" => [Value::Null, Value::Null],
            "own-policy-key" => [json!("live.dlx"), json!("k")],
            _ => [json!("live.dlx"), Value::Null],
        };
        for name in LIVE {
            until("the policies to govern", || (wiring(&vhost, name) == expected(name)).then_some(()));
        }
        let export: Value = serde_yaml::from_str(&exported(&vhost)).unwrap();

        let mut kept = spec(&vhost, set);
        let topo = Topo::new(&vhost).file("topology.yaml", &kept);
        let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
        for name in LIVE {
            let keep = resolutions_of(&plan, &format!("queues/{}/{name}", vhost.name()), "keep")[0].clone();
            assert_eq!(keep["applicability"], "yes", "{name}: {keep:#}");
            // Without a key, the default would apply. `none` does not disable the dead-lettering by the policy.
            if name == "other-policy" && set.has_default() {
                let remark = "# policy theirs dead-letters messages from other-policy to exchange live.dlx\n";
                assert!(keep["yaml"].as_str().unwrap().contains(remark), "{keep:#}");
            }
            kept = apply_resolution_to(&kept, ("queues", name), &keep);
        }
        println!("{set:?}\n{kept}");
        topo.rewrite(&kept);
        let again = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
        let changes = again["vhosts"][0]["changes"].as_array().unwrap();
        // Only the new dead-letter queues in the spec differ.
        let new = ["queues/V/dead", "queues/V/other", "exchanges/V/dead.dlx", "exchanges/V/other.dlx"];
        let new = new.map(|address| address.replace('V', vhost.name()));
        let is_new = |change: &&Value| {
            let address = change["address"].as_str().unwrap();
            new.iter().any(|known| known == address) || address.starts_with("bindings/")
        };
        let others: Vec<&Value> = changes.iter().filter(|change| !is_new(change)).collect();
        assert!(others.is_empty() && again["summary"]["conflict"] == 0, "{set:?}\n{kept}\n{others:#?}");

        let pasted: Value = serde_yaml::from_str(&kept).unwrap();
        for name in LIVE {
            assert_eq!(keys(&pasted, name), keys(&export, name), "{name}: {kept}\n{export:#}");
        }
        topo.run(["apply", "--yes"]).expect_code(0);
        for name in LIVE {
            until(&format!("{name} to be wired as before"), || (wiring(&vhost, name) == expected(name)).then_some(()));
        }
        topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
    }
}
