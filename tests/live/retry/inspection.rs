//! Tests the inspection of dead-lettered messages: they stay in the queue, regardless of how often they are returned.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use lapin::Channel;
use lapin::options::{BasicGetOptions, BasicNackOptions, BasicRejectOptions};
use serde_json::json;

use super::dead_lettered_message::{BODY, deaths, properties, unchanged};
use super::fixture::{Fixture, TIMEOUT, fail_times, since, until_ready};
use super::worker::{Verb, publish, publish_plain, ready, take_next};
use crate::support::{Vhost, block_on, until};

/// A number that exceeds the 21 deliveries after which a quorum queue drops a message since 4.0.
const LOOKS: usize = 50;

/// The time after which an absent message counts as dropped.
const ABSENT: Duration = Duration::from_secs(3);

/// A method of inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// As in the management UI.
    Http(&'static str),
    Nack,
    Reject,
}

const WAYS: [By; 4] = [By::Http("ack_requeue_true"), By::Http("reject_requeue_true"), By::Nack, By::Reject];

impl By {
    /// Reads the first message and returns it to the queue. Returns false if there was none.
    async fn inspect(self, vhost: &Vhost<'_>, channel: &Channel, queue: &str) -> bool {
        let Self::Http(how) = self else {
            let got = channel.basic_get(queue.into(), BasicGetOptions::default()).await.expect("the channel is open");
            let Some(message) = got else { return false };
            let nack = BasicNackOptions { requeue: true, ..Default::default() };
            let done = match self {
                Self::Nack => message.nack(nack).await,
                Self::Reject | Self::Http(_) => message.reject(BasicRejectOptions { requeue: true }).await,
            };
            return done.expect("the channel is open");
        };
        let body = json!({"count": 1, "ackmode": how, "encoding": "auto", "truncate": 50000});
        tokio::task::block_in_place(|| {
            let messages = until("an answer but 500", || {
                let answer = vhost.http().post(&vhost.path("queues", &[queue, "get"]), &body);
                (answer.status != 500).then(|| answer.expect_status(200))
            });
            messages.as_array().is_some_and(|messages| !messages.is_empty())
        })
    }

    /// Returns the number of inspections after which the broker drops the message, at most [`LOOKS`].
    async fn inspections(self, vhost: &Vhost<'_>, channel: &Channel, queue: &str) -> usize {
        for inspection in 0..LOOKS {
            // A quorum queue processes a requeue in the background, so a message can be absent for a short time
            // (observed on 3.10.8).
            let start = Instant::now();
            while !self.inspect(vhost, channel, queue).await {
                if start.elapsed() > ABSENT {
                    return inspection;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        LOOKS
    }
}

/// A message that exhausted its retries has a delivery count, which 4.3 keeps when it dead-letters the message.
#[test]
fn inspection_does_not_drop_a_dead_lettered_message() {
    let fixture = Fixture::new(
        "looks",
        "queues:\n  ladder: {type: quorum, deadLetter: dead, retry: {delays: [100ms]}}\n  \
           redeliver: {type: quorum, deadLetter: dead, maxRetries: 15}\n\
         deadLetterQueues: {dead: {type: quorum}}\n",
    );
    block_on(async {
        let channel = fixture.channel().await;
        let [by_http, by_nack, by_rejecting_over_http, by_reject] = WAYS;
        for (queue, verb, times, ways) in [
            ("ladder", Verb::NackAway, 2, [by_http, by_reject]),
            ("redeliver", Verb::RejectBack, 16, [by_nack, by_rejecting_over_http]),
        ] {
            publish(&channel, "", queue, BODY, properties(2)).await;
            fail_times(&channel, queue, &verb, times).await;
            until_ready(&channel, "dead", 1).await;
            for way in ways {
                assert_eq!(way.inspections(&fixture.vhost, &channel, "dead").await, LOOKS, "{way:?}");
            }
            until_ready(&channel, "dead", 1).await;
            let dead_message = take_next(&channel, "dead", TIMEOUT).await;
            unchanged(&dead_message, &properties(2), queue);
            let queues: BTreeSet<String> = deaths(&dead_message).into_iter().map(|it| it.queue).collect();
            assert!(queues.contains(queue) && !queues.contains("dead"), "{queues:?}");
        }
    });
    fixture.is_left_empty();
}

/// For comparison, this test uses a quorum queue without protection.
#[test]
fn inspection_counts_as_delivery() {
    let fixture = Fixture::new("wears", "queues: {plain: {type: quorum}}\n");
    block_on(async {
        let channel = fixture.channel().await;
        for way in WAYS {
            publish_plain(&channel, "", "plain", "message").await;
            let inspections = way.inspections(&fixture.vhost, &channel, "plain").await;
            // From 4.3 on, the broker does not count a requeue by nack. The management plugin requeues by nack unless
            // the request asks for a reject.
            let is_nack = matches!(way, By::Nack | By::Http("ack_requeue_true"));
            let is_counted = since(4, 0) && !(since(4, 3) && is_nack);
            assert_eq!(inspections, if is_counted { 21 } else { LOOKS }, "{way:?}");
            if !is_counted {
                take_next(&channel, "plain", TIMEOUT).await;
            }
            assert_eq!(ready(&channel, "plain").await, 0, "{way:?}");
        }
    });
}
