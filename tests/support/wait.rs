//! Waits without fixed sleeps: futures on one shared runtime, and conditions polled with a deadline.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Connections of a test may outlive a call, so their tasks need a runtime that outlives every test.
static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads can be started")
});

/// The time limit for anything that the broker does.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);

/// Runs a future to its end from a synchronous test. `None` if it takes longer than [`TIMEOUT`].
pub(crate) fn try_block_on<T>(future: impl Future<Output = T>) -> Option<T> {
    RUNTIME.block_on(async { tokio::time::timeout(TIMEOUT, future).await }).ok()
}

/// The same, but a timeout panics. Not for `drop`, which must not panic.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    try_block_on(future).unwrap_or_else(|| panic!("no answer within {TIMEOUT:?}"))
}

/// Polls until there is a value and returns it. Panics with the awaited condition after [`TIMEOUT`].
pub(crate) fn until<T>(awaited: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    until_ok(awaited, || poll().ok_or("no value"))
}

/// Polls until a result is `Ok` and returns its value. Panics after [`TIMEOUT`] with the awaited condition and the last
/// error.
pub(crate) fn until_ok<T, E: std::fmt::Debug>(awaited: &str, mut poll: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match poll() {
            Ok(value) => return value,
            Err(last) if Instant::now() >= deadline => panic!("waited {TIMEOUT:?} for {awaited}; last: {last:?}"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
