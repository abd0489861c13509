//! Reads the specs and the broker concurrently: topo parses and lints the specs while the broker produces its lists.

use super::failure::Failure;
use super::findings::{self, Found};
use super::input::{self, Loaded};
use super::sources::Sources;
use crate::broker::{Broker, Snapshot, Survey};
use crate::lint::Levels;
use crate::model::{BrokerVersion, ObjectKind, VhostName};
use crate::plan::Desired;
use crate::rabbitmq::BrokerProfile;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;
use tokio::try_join;

/// The loaded specs and the state of their vhosts, in the same order.
pub(super) struct Reading {
    pub(super) loaded: Loaded,
    /// The desired topologies for this broker.
    pub(super) desired: Vec<Arc<Desired>>,
    /// The lint findings for this broker.
    pub(super) found: Found,
    pub(super) snapshots: Vec<Snapshot>,
}

/// Reads both. Errors of the specs are reported before topo waits for a broker.
pub(super) async fn read(
    broker: &Broker,
    sources: Sources,
    levels: Levels,
    prune: BTreeSet<ObjectKind>,
) -> Result<Reading, Failure> {
    let guessed = sources.guess_vhosts();
    let (sender, receiver) = oneshot::channel();
    let surveyed: Arc<OnceLock<Survey>> = Arc::default();
    let known = Arc::clone(&surveyed);
    let load = async {
        let known = move |vhost: &VhostName| known.get().map(|survey| survey.profile(vhost));
        let loaded = on_other_thread(move || input::load_for_known(sources, known)).await?;
        // Sending fails if the other side has failed.
        let _ = sender.send(loaded.vhosts());
        Ok::<_, Failure>(loaded)
    };
    let specs = async {
        let ask = async {
            let answer = broker.survey().await;
            // The response usually arrives before the end of parsing, so that the specs are expanded only once.
            if let Ok(survey) = &answer {
                surveyed.get_or_init(|| survey.clone());
            }
            Ok(answer)
        };
        let (mut loaded, survey) = try_join!(load, ask)?;
        let survey = survey?;
        let profiles: Vec<BrokerProfile> = loaded.vhosts().iter().map(|vhost| survey.profile(vhost)).collect();
        let expand_and_lint = move || {
            let newest = BrokerProfile::of(BrokerVersion::NEWEST_KNOWN);
            loaded.expand_for(|index| profiles.get(index).unwrap_or(&newest))?;
            let found = findings::of(&loaded, profiles.iter(), &levels);
            Ok((loaded, found, levels))
        };
        Ok::<_, Failure>((survey, on_other_thread(expand_and_lint).await?))
    };
    let lists = async {
        let guess = broker.lists(&guessed).await;
        match receiver.await {
            Ok(vhosts) if vhosts != guessed => Ok(broker.lists(&vhosts).await),
            Ok(_) | Err(_) => Ok(guess),
        }
    };
    let ((survey, (mut loaded, found, levels)), listed) = try_join!(specs, lists)?;
    let mut snapshots = listed.snapshots(survey)?;
    for (snapshot, kinds) in snapshots.iter_mut().zip(loaded.record_kinds()) {
        broker.read_records(snapshot, &kinds).await?;
    }
    let join = move || {
        let found = found.with_live_objects(&loaded, &snapshots, (&levels, &prune));
        let desired = loaded.take_desired().into_iter().map(Arc::new).collect();
        Ok(Reading { loaded, desired, found, snapshots })
    };
    on_other_thread(join).await
}

/// Computes on another thread, while this one receives the responses of the broker.
async fn on_other_thread<T: Send + 'static>(
    compute: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(compute).await {
        Ok(result) => result,
        // The task is never canceled.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
