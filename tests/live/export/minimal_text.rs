//! Applies the examples and realistic topologies, and checks that each export has the same content and a similar
//! length.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::round_trip::{round_trip, without_comments};
use crate::support::{Node, Topo, Vhost, cases, seed};

/// The factor by which an export may be longer than the original.
const MOST: f64 = 1.3;

fn specs() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<PathBuf> = ["examples", "tests/lint/realistic"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        // One example is a program, not a topology. Another one is exported by `live::whole_broker`.
        .filter(|path| !path.ends_with("examples/library") && !path.ends_with("examples/whole-broker"))
        .map(|path| if path.is_dir() { path.join("topology.yaml") } else { path })
        .collect();
    paths.sort();
    // Each vhost in a file becomes a separate spec.
    let documents = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        text.split("\n---\n").map(|it| (path.clone(), it.to_owned())).collect::<Vec<_>>()
    };
    paths.into_iter().flat_map(documents).collect()
}

/// Renames the vhost.
fn renamed(text: &str, name: &str) -> String {
    let lines = text.lines().map(|line| match line.strip_prefix("vhost: ") {
        Some(rest) if rest.starts_with('{') => {
            let (_, rest) = rest.split_once("name: ").unwrap();
            let end = rest.find([',', '}']).unwrap();
            format!("vhost: {{name: {name}{}", &rest[end..])
        }
        Some(_) => format!("vhost: {name}"),
        None => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

/// Creates the external objects.
fn furnish(vhost: &Vhost<'_>, text: &str) {
    let spec: Value = serde_yaml::from_str(text).unwrap();
    for (section, kind) in [("exchanges", "exchanges"), ("queues", "queues"), ("deadLetterQueues", "queues")] {
        for (name, object) in spec[section].as_object().into_iter().flatten() {
            if object["external"] == true {
                let body = match kind {
                    "exchanges" => json!({"type": "topic", "durable": true}),
                    _ => json!({"durable": true, "arguments": {"x-queue-type": "classic"}}),
                };
                vhost.http().put(&vhost.path(kind, &[name]), &body).expect_status(201);
            }
        }
    }
}

/// Returns the contract of every queue with a ladder.
fn ladders(topo: &Topo, file: &str, version: &str) -> Vec<(String, Value)> {
    let flags = ["contract", file, "--format", "json", "--broker-version", version];
    let contracts = topo.run(flags).expect_code(0).json();
    let vhosts = contracts["vhosts"].as_object().unwrap().values();
    let queues = vhosts.flat_map(|vhost| vhost["queues"].as_object().unwrap().clone());
    queues
        .filter(|(_, queue)| queue["strategy"] == "ladder")
        .map(|(name, queue)| (name, queue["delays"].clone()))
        .collect()
}

#[test]
fn handwritten_specs_round_trip_compactly() {
    let node = Node::shared();
    let (mut longer, mut refused, mut ladder_count, mut count) = (Vec::new(), Vec::new(), 0, 0);
    // A short run tests a third of the specs, which depends on the version and the seed.
    let stride = cases(3, 1);
    let version: u64 = node.version().bytes().map(u64::from).sum();
    let first = usize::try_from(version.wrapping_add(seed()) % stride as u64).unwrap();
    for (path, text) in specs().into_iter().skip(first).step_by(stride) {
        let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string();
        let vhost = node.vhost("written");
        furnish(&vhost, &text);
        let topo = Topo::new(&vhost).file("topology.yaml", &renamed(&text, vhost.name()));
        let apply = topo.run(["apply", "--yes"]);
        if apply.code != Some(0) {
            // Some versions do not support streams, long ladders, or other features.
            let why = apply.stderr.lines().chain(apply.stdout.lines()).find(|line| !line.trim().is_empty());
            refused.push(format!("{name}: {}", why.unwrap_or_default()));
            continue;
        }
        let export = round_trip(&vhost);
        topo.write("export.yaml", &export);
        let (before, after) = (without_comments(&text).len(), without_comments(&export).len());
        count += 1;
        println!("{name}: {before} lines, {after} exported\n{export}");
        if after as f64 > before as f64 * MOST {
            longer.push(format!("{name}: {before} lines, {after} exported\n{export}"));
        }
        let expected = ladders(&topo, "topology.yaml", node.version());
        ladder_count += expected.len();
        assert_eq!(ladders(&topo, "export.yaml", node.version()), expected, "{name}\n{export}");
    }
    println!("{count} round trips, {ladder_count} ladders; refused by {}:\n{}", node.version(), refused.join("\n"));
    assert!(longer.is_empty(), "{}", longer.join("\n\n"));
    assert!(
        // Fewer specs are valid on a version that refuses streams and long ladders.
        count >= 20 / stride - 2 && ladder_count >= 5 * usize::from(stride == 1),
        "{count} round trips, {ladder_count} ladders\n{}",
        refused.join("\n")
    );
}
