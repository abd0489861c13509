//! Messages of megabytes: what is under way is bounded in bytes, too.

use std::path::Path;
use std::time::Duration;

use super::fixture::{Fixture, Q, TRANSPORTS, TTL, at_once, is_long};
use crate::support::until;

/// Of one message.
const SIZE: usize = 2 << 20;
/// What topo may hold for 64 MiB under way: itself, a message in more than one buffer, and what the allocator keeps for a
/// while. All of them together are 300 MB, and in the long form a gigabyte.
const MOST_KIB: u64 = 256 << 10;

/// The most memory that a process ever had, in KiB.
fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn large_messages_are_not_all_held_in_memory() {
    let messages = if is_long() { 500 } else { 150 };
    at_once(1, TRANSPORTS, |transport| {
        let fixture = Fixture::new("large", TTL);
        let body = "x".repeat(SIZE);
        for _ in 0..messages {
            fixture.amqp.publish("", Q, &body);
        }
        // The sizes are statistics.
        until("the sizes", || {
            (fixture.vhost.queue(Q)["message_bytes"].as_u64() == Some((messages * SIZE) as u64)).then_some(())
        });
        let mut running = fixture.start(transport);
        let mut peak = 0;
        while !running.is_over() {
            peak = peak_kib(running.pid()).unwrap_or(0).max(peak);
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = running.wait();
        println!("{messages} messages of {SIZE} bytes by {transport}: at most {peak} KiB");
        assert_eq!(output.code, Some(0), "{output}");
        assert!(peak > 0 && peak < MOST_KIB, "{peak} KiB: {output}");
        fixture.expect_migrated(&output);
        assert_eq!(usize::try_from(fixture.amqp.ready(Q)).unwrap(), messages);
    });
}
