//! Tests that memory is proportional to the input: a few megabytes of arguments do not need gigabytes.

use std::thread::sleep;
use std::time::Duration;

use crate::support::{Output, Topo};

pub(crate) const MEBIBYTE: usize = 1 << 20;
/// The memory of a debug build with minimal input.
pub(crate) const BASE: usize = 60 * MEBIBYTE;

/// Runs topo and returns its output and peak memory.
pub(crate) fn peak(topo: &Topo, arguments: &[&str]) -> (Output, usize) {
    let mut running = topo.start(arguments.iter().copied());
    let mut peak = 0;
    while !running.is_over() {
        peak = peak.max(running.peak_kib().unwrap_or_default() as usize * 1024);
        sleep(Duration::from_millis(2));
    }
    (running.wait(), peak)
}

/// Returns a definitions file whose queues have this argument.
fn definitions(queues: usize, argument: &str) -> String {
    let queue = |n| {
        format!(
            r#"{{"name":"q{n}","vhost":"/","durable":true,"auto_delete":false,"arguments":{{"x-list":{argument}}}}}"#
        )
    };
    let queues: Vec<String> = (0..queues).map(queue).collect();
    format!(r#"{{"rabbit_version":"4.3.6","vhosts":[{{"name":"/"}}],"queues":[{}],"exchanges":[]}}"#, queues.join(","))
}

const EXPORT: [&str; 3] = ["export", "--definitions", "large.json"];

#[test]
fn long_list_argument_takes_proportional_memory() {
    let list = format!("[{}1]", "1,".repeat(5_000_000));
    let topo = Topo::offline().file("large.json", &definitions(1, &list));
    let (Output { code, stderr: error, .. }, peak) = peak(&topo, &EXPORT);
    println!("a list of {} bytes: {} MiB", list.len(), peak / MEBIBYTE);
    assert_eq!(code, Some(0), "{error}");
    assert!(peak > list.len() && peak < BASE + 4 * list.len(), "{peak}: {error}");
}

#[test]
fn list_of_small_tables_takes_proportional_memory() {
    let list = format!("[{}1]", "{\"\":1},".repeat(1_000_000));
    let topo = Topo::offline().file("large.json", &definitions(1, &list));
    let (Output { code, stderr: error, .. }, peak) = peak(&topo, &EXPORT);
    println!("a list of {} bytes: {} MiB", list.len(), peak / MEBIBYTE);
    assert_eq!(code, Some(0), "{error}");
    assert!(peak > list.len() && peak < BASE + 10 * list.len(), "{peak}: {error}");
}

#[test]
fn excessive_arguments_are_truncated_and_named() {
    let list = format!("[{}1]", "{\"\":1},".repeat(4_900));
    let plain =
        r#"{"name":"z","vhost":"/","durable":true,"auto_delete":false,"arguments":{"x-max-length":5}}],"exchanges""#;
    let file = definitions(60, &list).replace("],\"exchanges\"", &format!(",{plain}"));
    let topo = Topo::offline().file("large.json", &file);
    let (output, peak) = peak(&topo, &EXPORT);
    println!("60 lists, {} bytes: {} MiB", file.len(), peak / MEBIBYTE);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let left_out = "(a value has more than 64 levels or 10,000 values, or takes too much memory)";
    assert!(
        output.says(left_out) && output.says("queues that cannot be represented in a spec: q"),
        "{}",
        output.stderr
    );
    assert!(output.stdout.contains("  z:") && !output.stdout.contains("  q59:"), "{}", output.stderr);
    assert!(peak < BASE + 160 * MEBIBYTE + 20 * file.len(), "{peak}");
}

/// Parameters, shovel settings and saved plans can contain any JSON, most of which topo ignores.
#[test]
fn unused_json_takes_proportional_memory() {
    let list = format!("[{}1]", "{\"\":1},".repeat(1_000_000));
    let parameter =
        |component: &str| format!(r#"{{"component":"{component}","vhost":"/","name":"p","value":{{"a":{list}}}}}"#);
    let parameters = ["shovel", "vhost-limits", "odd"].map(parameter).join(",");
    let file =
        format!(r#"{{"rabbit_version":"4.3.6","vhosts":[{{"name":"/"}}],"queues":[],"parameters":[{parameters}]}}"#);
    let topo = Topo::offline().file("large.json", &file);
    let (output, most) = peak(&topo, &EXPORT);
    println!("parameters of {} bytes: {} MiB", file.len(), most / MEBIBYTE);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(most < BASE + 4 * file.len(), "{most}: {}", output.stderr);
    let topo = Topo::offline().file("plan.json", &format!(r#"{{"formatVersion":999,"a":{list}}}"#));
    let (output, most) = peak(&topo, &["show", "plan.json"]);
    println!("a plan of {} bytes: {} MiB", list.len(), most / MEBIBYTE);
    assert!(output.code == Some(65) && output.says("format version 999"), "{}", output.stderr);
    assert!(most < BASE + 4 * list.len(), "{most}: {}", output.stderr);
}

#[test]
fn spec_with_a_long_list_argument_is_refused() {
    let list = "1,".repeat(10_000);
    let spec = format!("version: 1\nvhost: /\nqueues: {{q: {{type: classic, arguments: {{x-list: [{list}]}}}}}}\n");
    let output = Topo::offline().spec(&spec).run(["validate"]).expect_code(65);
    assert!(output.says("`x-list` contains more than 10,000 values"), "{output}");
}
