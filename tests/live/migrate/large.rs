//! Tests that the bytes in flight are bounded for messages of several megabytes.

use std::time::Duration;

use super::fixture::{Fixture, Q, TRANSPORTS, TTL};
use crate::support::random::is_long;
use crate::support::{run_concurrently, until};

/// The size of one message.
const SIZE: usize = 2 << 20;
/// The memory that topo may use with 64 MiB in flight: the process, several buffers per message, and allocator caches.
/// On a busy machine, topo used up to 267,336 KiB.
///
/// All messages together have 420 MB, in the long form a gigabyte.
const MAX_KIB: u64 = 320 << 10;

#[test]
fn large_messages_are_moved_in_bounded_memory() {
    let messages = if is_long() { 500 } else { 200 };
    run_concurrently(1, TRANSPORTS, |transport| {
        let fixture = Fixture::new("large", TTL);
        let body = "x".repeat(SIZE);
        for _ in 0..messages {
            fixture.amqp.publish("", Q, &body);
        }
        // The broker reports the message sizes in its statistics.
        until("the sizes", || {
            (fixture.vhost.queue(Q)["message_bytes"].as_u64() == Some((messages * SIZE) as u64)).then_some(())
        });
        let mut running = fixture.start(transport);
        let mut peak = 0;
        while !running.is_over() {
            peak = running.peak_kib().unwrap_or(0).max(peak);
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = running.wait();
        println!("{messages} messages of {SIZE} bytes by {transport}: at most {peak} KiB");
        assert_eq!(output.code, Some(0), "{output}");
        assert!(peak > 0 && peak < MAX_KIB, "{peak} KiB: {output}");
        fixture.expect_migrated(&output);
        assert_eq!(usize::try_from(fixture.amqp.ready(Q)).unwrap(), messages);
    });
}
