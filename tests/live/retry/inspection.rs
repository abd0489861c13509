//! People look at dead letters, and put them back. However often they do, a letter stays.

use std::collections::BTreeSet;

use lapin::Channel;
use lapin::options::{BasicGetOptions, BasicNackOptions, BasicRejectOptions};
use serde_json::json;

use super::dead_lettered_message::{BODY, deaths, properties, unchanged};
use super::fixture::{Fixture, TIMEOUT, fail_times, since, until_ready};
use super::worker::{Verb, publish, publish_plain, ready, take_next};
use crate::support::{Vhost, block_on, until};

/// More often than the 21 deliveries after which a quorum queue drops a message since 4.0.
const LOOKS: usize = 50;

/// How one looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// As the management UI does it.
    Http(&'static str),
    Nack,
    Reject,
}

const WAYS: [By; 4] = [By::Http("ack_requeue_true"), By::Http("reject_requeue_true"), By::Nack, By::Reject];

impl By {
    /// Looks at the first message and puts it back; false when there was none.
    async fn look(self, vhost: &Vhost<'_>, channel: &Channel, queue: &str) -> bool {
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

    /// How often a message can be looked at before it is gone, at most [`LOOKS`] times.
    async fn looks(self, vhost: &Vhost<'_>, channel: &Channel, queue: &str) -> usize {
        for look in 0..LOOKS {
            if !self.look(vhost, channel, queue).await {
                return look;
            }
        }
        LOOKS
    }
}

/// Those that died of their retries have the deliveries on their account already, which on 4.3 travel along.
#[test]
fn looking_at_a_dead_letter_does_not_destroy_it() {
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
                assert_eq!(way.looks(&fixture.vhost, &channel, "dead").await, LOOKS, "{way:?}");
            }
            until_ready(&channel, "dead", 1).await;
            let letter = take_next(&channel, "dead", TIMEOUT).await;
            unchanged(&letter, &properties(2), queue);
            let queues: BTreeSet<String> = deaths(&letter).into_iter().map(|it| it.queue).collect();
            assert!(queues.contains(queue) && !queues.contains("dead"), "{queues:?}");
        }
    });
    fixture.is_left_empty();
}

/// The control: a quorum queue that nobody protects.
#[test]
fn looking_at_a_message_wears_it_out_otherwise() {
    let fixture = Fixture::new("wears", "queues: {plain: {type: quorum}}\n");
    block_on(async {
        let channel = fixture.channel().await;
        for way in WAYS {
            publish_plain(&channel, "", "plain", "letter").await;
            let looks = way.looks(&fixture.vhost, &channel, "plain").await;
            // From 4.3 on a nack that gives back is not counted; the management plugin gives back by a nack, too, unless it
            // is told to reject.
            let is_nack = matches!(way, By::Nack | By::Http("ack_requeue_true"));
            let is_counted = since(4, 0) && !(since(4, 3) && is_nack);
            assert_eq!(looks, if is_counted { 21 } else { LOOKS }, "{way:?}");
            if !is_counted {
                take_next(&channel, "plain", TIMEOUT).await;
            }
            assert_eq!(ready(&channel, "plain").await, 0, "{way:?}");
        }
    });
}
