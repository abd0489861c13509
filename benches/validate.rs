//! Measures `topo validate` of 1,000, 3,000 and 10,000 queues: the CPU time per queue, which must not grow, and the
//! peak memory. The benchmark fails if the time per queue with 10,000 queues is more than 1.5 times the time with 1,000
//! queues. Caches cause some growth. With a quadratic algorithm, the ratio would be 10.
//!
//! ```text
//! cargo bench --bench validate              # 5 rounds
//!
//! cargo bench --bench validate -- 20        # a different number of rounds
//! ```
//!
//! Results without link-time optimization: 75, 79 and 87 µs of CPU time per queue at 1,000, 3,000 and 10,000 queues, a
//! ratio of 1.15; at most 43, 74 and 179 MiB. Memory causes the remaining growth, because a smaller part of the data
//! fits into the processor's cache.
//!
//! Twenty queues form a service with an exchange and a policy; an additional policy matches all queues. Each queue has
//! a binding, limits and a dead-letter queue; every tenth queue has a retry ladder. The benchmark uses no broker.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench fails by a panic")]

use std::fmt::Write;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

const SIZES: [usize; 3] = [1_000, 3_000, 10_000];
/// The maximum ratio between the times per queue with many and with few queues.
const MOST: f64 = 1.5;

fn spec(queues: usize) -> String {
    let mut text = String::from(
        "version: 1\nvhost: bench\nx-limits: &limits {maxLength: 100000, overflow: reject-publish}\n\
         defaults:\n  queue: {type: quorum}\n  deadLetter: bench.dead\nexchanges:\n",
    );
    let services = queues.div_ceil(20);
    for service in 0..services {
        let _ = writeln!(text, "  events.{service}: {{type: topic}}");
    }
    text.push_str("deadLetterQueues:\n  bench.dead: {type: quorum}\npolicies:\n");
    text.push_str("  all: {pattern: '(^|[.])work[.][0-9]+$', applyTo: queues, definition: {maxLengthBytes: 10GiB}}\n");
    for service in 0..services {
        let _ = writeln!(
            text,
            "  service.{service}: {{pattern: '^service\\.{service}\\.work\\.[0-9]+$', applyTo: queues, priority: 1, definition: {{maxLengthBytes: 1GiB}}}}"
        );
    }
    text.push_str("queues:\n");
    for queue in 0..queues {
        let service = queue / 20;
        let _ = write!(
            text,
            "  service.{service}.work.{queue}:\n    <<: *limits\n    messageTtl: 7d\n    bindings:\n      - {{exchange: events.{service}, routingKey: \"order.{queue}.#\"}}\n",
        );
        if queue % 10 == 0 {
            text.push_str("    maxRetries: 3\n    retry: {delays: [5s, 30s, 5m]}\n");
        }
    }
    text
}

/// Returns the CPU time, and the peak memory in kilobytes.
fn run(path: &std::path::Path) -> (Duration, u64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_topo"))
        .arg("validate")
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    // The CPU time in nanoseconds, which excludes other load.
    let schedule = format!("/proc/{}/schedstat", child.id());
    let (mut most, mut taken) = (0, 0);
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok());
        most = most.max(kilobytes.unwrap_or(0));
        let text = std::fs::read_to_string(&schedule).unwrap_or_default();
        taken = text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(taken);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return (Duration::from_nanos(taken), most);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn main() -> ExitCode {
    // `cargo bench` adds a flag, which is ignored.
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse::<usize>().ok()).unwrap_or(5);
    let folder = tempfile::tempdir().unwrap();
    let (mut first, mut last) = (None, 1.0);
    for queues in SIZES {
        let path = folder.path().join(format!("{queues}.yaml"));
        let text = spec(queues);
        std::fs::write(&path, &text).unwrap();
        let mut runs: Vec<(Duration, u64)> = (0..rounds).map(|_| run(&path)).collect();
        runs.sort();
        // Uses the best round, to exclude other load.
        let (best, most) = (runs[0].0, runs.iter().map(|(_, most)| *most).max().unwrap_or(0));
        let each = best.as_secs_f64() * 1e6 / queues as f64;
        let ratio = each / *first.get_or_insert(each);
        last = ratio;
        println!(
            "{queues:>6} queues ({:>4} KiB of YAML): {:>6.0} ms of a processor, {each:.1} µs each (×{ratio:.2}), at most {} MiB",
            text.len() / 1024,
            best.as_secs_f64() * 1e3,
            most / 1024
        );
    }
    let verdict = if last <= MOST { "as it must be" } else { "TOO MUCH" };
    println!("a queue among {} takes ×{last:.2} of one among {}: {verdict} (at most ×{MOST})", SIZES[2], SIZES[0]);
    if last <= MOST { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
