//! Memory is bounded in proportion to what is read: a few megabytes of arguments do not take gigabytes.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::support::Topo;

const MEBIBYTE: usize = 1 << 20;
/// Of a debug build that reads almost nothing.
const BASE: usize = 60 * MEBIBYTE;

/// Runs topo to its end; its exit code, what it wrote to standard error, and the most memory that it took.
fn peak(topo: &Topo, arguments: &[&str]) -> (Option<i32>, String, usize) {
    let mut running = topo.start(arguments.iter().copied());
    let mut peak = 0;
    while !running.is_over() {
        // Of a process that has just ended, there is no such line.
        let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
        peak = peak.max(kilobytes.unwrap_or_default() << 10);
        sleep(Duration::from_millis(2));
    }
    let output = running.wait();
    (output.code, output.stderr, peak)
}

/// A definitions file whose queues have that argument.
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
fn long_list_argument_takes_memory_in_proportion() {
    let list = format!("[{}1]", "1,".repeat(5_000_000));
    let topo = Topo::offline().file("large.json", &definitions(1, &list));
    let (code, error, peak) = peak(&topo, &EXPORT);
    println!("a list of {} bytes: {} MiB", list.len(), peak / MEBIBYTE);
    assert_eq!(code, Some(0), "{error}");
    assert!(peak > list.len() && peak < BASE + 4 * list.len(), "{peak}: {error}");
}

#[test]
fn list_of_small_tables_takes_memory_in_proportion() {
    let list = format!("[{}1]", "{\"\":1},".repeat(1_000_000));
    let topo = Topo::offline().file("large.json", &definitions(1, &list));
    let (code, error, peak) = peak(&topo, &EXPORT);
    println!("a list of {} bytes: {} MiB", list.len(), peak / MEBIBYTE);
    assert_eq!(code, Some(0), "{error}");
    assert!(peak > list.len() && peak < BASE + 10 * list.len(), "{peak}: {error}");
}

#[test]
fn arguments_that_take_too_much_memory_are_refused() {
    let list = format!("[{}1]", "{\"\":1},".repeat(4_900));
    let file = definitions(60, &list);
    let topo = Topo::offline().file("large.json", &file);
    let (code, error, peak) = peak(&topo, &EXPORT);
    println!("60 lists, {} bytes: {} MiB", file.len(), peak / MEBIBYTE);
    assert_eq!(code, Some(65), "{error}");
    assert!(error.contains("queue `q") && error.contains("its arguments take more than 95 MiB of memory"), "{error}");
    assert!(peak < BASE + 64 * MEBIBYTE + 20 * file.len(), "{peak}");
}

#[test]
fn spec_with_a_long_list_argument_is_refused() {
    let list = "1,".repeat(10_000);
    let spec = format!("version: 1\nvhost: /\nqueues: {{q: {{type: classic, arguments: {{x-list: [{list}]}}}}}}\n");
    let output = Topo::offline().spec(&spec).run(["validate"]).expect_code(65);
    assert!(output.says("`x-list` contains more than 10,000 values"), "{output}");
}
