//! Ctrl-C, and SIGTERM, which is how pipelines stop a job.

use super::output;
use crate::apply::Interrupt;
use std::time::Duration;

/// The first signal lets the step under way end. The second one ends this future: who waits for it stops at once.
/// (Once a signal has been listened to, the system's own way of ending the process is gone for good.)
pub(super) async fn insisted(interrupt: &Interrupt) {
    asked_to_stop().await;
    interrupt.request();
    output::tell("\nstopping after the step under way; the report follows (again: stop at once)\n");
    // A terminal and a supervisor may both send the first one.
    tokio::time::sleep(Duration::from_millis(200)).await;
    asked_to_stop().await;
}

#[cfg(unix)]
async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        result = tokio::signal::ctrl_c() => if result.is_err() { std::future::pending::<()>().await },
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn asked_to_stop() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
