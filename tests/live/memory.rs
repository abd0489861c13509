//! Tests that memory is proportional to the size of the broker's responses.

use std::sync::Arc;

use serde_json::json;

use crate::cli::memory::{BASE, MEBIBYTE, peak};
use crate::support::{Fault, Node, Proxy, Topo, gets};

fn is_long() -> bool {
    std::env::var_os("TOPO_LONG").is_some()
}

/// Returns a proxy that responds with this text to all requests whose path contains this part.
fn instead(path: &str, text: &str) -> Proxy {
    Proxy::to(Node::shared()).on(gets().path(path), Fault::Text(Arc::from(text)))
}

#[test]
fn long_list_argument_takes_proportional_memory() {
    let vhost = Node::shared().vhost("memory");
    let megabytes = if is_long() { 100 } else { 20 };
    for element in ["1,", "{\"\":1},"] {
        let list = element.repeat(megabytes * 1_000_000 / element.len());
        let queue = |name: &str, arguments: &str| {
            format!(
                r#"{{"name":"{name}","vhost":"{}","type":"classic","durable":true,"auto_delete":false,"exclusive":false,"arguments":{arguments}}}"#,
                vhost.name()
            )
        };
        let queues = [queue("q", &format!("{{\"x-list\":[{list}1]}}")), queue("z", "{\"x-max-length\":5}")];
        let answer = format!("[{}]", queues.join(","));
        let proxy = instead("/api/queues/", &answer);
        let topo = Topo::new(&vhost).through(&proxy).spec("queues: {z: {type: classic, maxLength: 5}}");
        for arguments in [["plan", "--show=all"], ["export", "--vhost={vhost}"]] {
            let (output, peak) = peak(&topo, &arguments);
            println!("{} of {} bytes with {element}: {} MiB", arguments[0], answer.len(), peak / MEBIBYTE);
            let output = output.expect_code(0);
            assert!(peak > answer.len() && peak < BASE + 3 * answer.len(), "{peak}");
            if arguments[0] == "export" {
                output.expect_text("q (a value has more than 64 levels or 10,000 values");
            }
        }
    }
}

#[test]
fn unused_json_takes_proportional_memory() {
    let vhost = Node::shared().vhost("memory");
    let megabytes = if is_long() { 100 } else { 10 };
    let list = "{\"\":1},".repeat(megabytes * 1_000_000 / 7);
    let spec = "queues: {q: {type: classic}}";
    Topo::new(&vhost).spec(spec).run(["apply", "--yes"]).expect_code(0);
    let shovel =
        format!(r#"[{{"vhost":"{}","name":"s","value":{{"a":[{list}1],"src-queue":[{list}1]}}}}]"#, vhost.name());
    let consumer = format!(r#"[{{"queue":{{"name":"q"}},"channel_details":{{"peer_host":[{list}1]}}}}]"#);
    for (path, answer) in [("/api/parameters/shovel", shovel), ("/api/consumers/", consumer)] {
        let proxy = instead(path, &answer);
        let topo = Topo::new(&vhost).through(&proxy).spec("queues: {q: {type: classic, maxLength: 5}}");
        let recreate = format!("--recreate=queues/{}/q=discard", vhost.name());
        let (output, peak) = peak(&topo, &["plan", &recreate]);
        println!("{path} of {} bytes: {} MiB", answer.len(), peak / MEBIBYTE);
        output.expect_code(0);
        assert!(proxy.count(&gets().path(path)) > 0, "{path}");
        assert!(peak > answer.len() && peak < BASE + 4 * answer.len(), "{peak}");
    }
}

/// Any client can declare such arguments with one frame each. Decoded, they need 70 MB.
#[test]
fn many_large_arguments_do_not_stop_a_vhost() {
    let vhost = Node::shared().vhost("large");
    let list: Vec<_> = (0..4_900).map(|_| json!({"": 1})).collect();
    for n in 0..20 {
        let arguments = json!({"x-queue-type": "classic", "x-list": list});
        let body = json!({"durable": true, "arguments": arguments});
        vhost.http().put(&vhost.path("queues", &[&format!("large-{n:02}")]), &body).expect_status(201);
    }
    let spec = "queues: {zz: {type: classic, maxLength: 5}}";
    let topo = Topo::new(&vhost).spec(spec);
    topo.run(["apply", "--yes"]).expect_code(0);
    topo.run(["plan"]).expect_code(0).expect_text("No changes");
    let output = topo.run(["export", "--vhost", "{vhost}"]).expect_code(0);
    assert!(output.stdout.contains("  zz:"), "{output}");
    assert!(output.says("queues that cannot be represented in a spec: large-"), "{output}");
    assert!(output.says("or takes too much memory") && !output.stdout.contains("  large-19:"), "{output}");
    // A backup lists the objects that it cannot contain.
    topo.rewrite("owns: ['*']\nqueues: {zz: {type: classic, maxLength: 5}}");
    let prune = ["apply", "--yes", "--prune", "--allow", "mass-delete", "--backup", "backup.json"];
    let output = topo.run(prune).expect_code(0);
    output.expect_text(
        "warning: the backup does not contain these objects, because one of their arguments has more than",
    );
    let backup = topo.read("backup.json");
    assert!(!backup.contains("large-19") && !backup.contains('…'), "a placeholder is in the backup");
    assert_eq!(vhost.names("queues"), ["zz"]);
}
