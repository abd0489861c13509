//! The arguments that only streams support.

use super::{ANY, Check, KnownArgument, STREAMS, ValueKind, Versions, always, supported};
use crate::model::QueueType;

/// The versions with stream filters.
const FILTERS: Versions = Versions::since(3, 13);

/// Compared as a string before 4.3.6, and as an age from then on (`rabbit_amqqueue:normalize_max_age`).
pub(super) const MAX_AGE: KnownArgument = KnownArgument {
    name: "x-max-age",
    key: "maxAge",
    value: ValueKind::MaxAge,
    checks: &[Check { versions: STREAMS, value: ValueKind::MaxAge }],
    support: &[always(QueueType::Stream)],
    idle: &[],
    known_to_3_8: false,
    policy_key: Some("max-age"),
    doc: "The broker deletes segments of the stream that are older.",
};

pub(super) const MAX_SEGMENT_SIZE_BYTES: KnownArgument = KnownArgument {
    name: "x-stream-max-segment-size-bytes",
    key: "streamMaxSegmentSizeBytes",
    value: ValueKind::Size(LARGEST_SEGMENT),
    checks: &[Check { versions: STREAMS, value: ValueKind::Size(ANY) }],
    support: &[always(QueueType::Stream)],
    idle: &[],
    known_to_3_8: false,
    policy_key: Some("stream-max-segment-size-bytes"),
    doc: "The maximum size of a segment file of the stream.",
};

/// The maximum, which streams check last (`rabbit_stream_queue:check_max_segment_size_bytes`).
const LARGEST_SEGMENT: i64 = 3_000_000_000;

/// Streams check its range in all versions (`rabbit_stream_queue:check_filter_size`), even in versions that do not list
/// it. They list it in 4.2 since 4.2.7, and in 4.3 since 4.3.1.
pub(super) const FILTER_SIZE_BYTES: KnownArgument = KnownArgument {
    name: "x-stream-filter-size-bytes",
    key: "streamFilterSizeBytes",
    value: ValueKind::Count(16, 255),
    checks: &[Check { versions: FILTERS, value: ValueKind::Count(0, ANY) }],
    support: &[supported(
        QueueType::Stream,
        FILTERS,
        &[Versions::since_patch(4, 2, 7).until(4, 3), Versions::since_patch(4, 3, 1)],
    )],
    idle: &[],
    known_to_3_8: false,
    policy_key: Some("stream-filter-size-bytes"),
    doc: "The size of the filter of each chunk.",
};

pub(super) const INITIAL_CLUSTER_SIZE: KnownArgument = KnownArgument {
    name: "x-initial-cluster-size",
    key: "initialClusterSize",
    value: ValueKind::Count(1, ANY),
    checks: &[Check { versions: STREAMS, value: ValueKind::Count(1, ANY) }],
    support: &[always(QueueType::Stream)],
    idle: &[],
    known_to_3_8: false,
    policy_key: Some("initial-cluster-size"),
    doc: "The initial number of replicas of a stream.",
};
