//! Waits without fixed sleeps: runs futures on a shared runtime, and polls conditions with a deadline.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

/// Connections of a test may outlive a call, so their tasks need a runtime that outlives every test.
static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads can be started")
});

/// The time limit for any operation of the broker.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);

/// The limits of the pause between two polls.
const MIN_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_millis(250);

/// Runs a future to completion in a synchronous test. Returns `None` if it takes longer than [`TIMEOUT`].
pub(crate) fn try_block_on<T>(future: impl Future<Output = T>) -> Option<T> {
    RUNTIME.block_on(async { tokio::time::timeout(TIMEOUT, future).await }).ok()
}

/// Runs a future to completion, and panics after [`TIMEOUT`]. Must not be used in `drop`, which must not panic.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    try_block_on(future).unwrap_or_else(|| panic!("no answer within {TIMEOUT:?}"))
}

/// Sets flags when it is dropped, also by a panic, so that threads that run until a flag is set end. A failed test
/// would otherwise never end, because a scope waits for its threads.
pub(crate) struct SetOnDrop<'a, const N: usize>(pub(crate) [&'a AtomicBool; N]);

impl<const N: usize> Drop for SetOnDrop<'_, N> {
    fn drop(&mut self) {
        for flag in self.0 {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

/// Polls until there is a value and returns it. After [`TIMEOUT`], panics with the awaited condition.
pub(crate) fn until<T>(awaited: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    until_ok(awaited, || poll().ok_or("no value"))
}

/// Polls until a result is `Ok` and returns its value. After [`TIMEOUT`], panics with the awaited condition and the
/// last error.
pub(crate) fn until_ok<T, E: std::fmt::Debug>(awaited: &str, mut poll: impl FnMut() -> Result<T, E>) -> T {
    let start = Instant::now();
    loop {
        match poll() {
            Ok(value) => return value,
            Err(last) if start.elapsed() >= TIMEOUT => panic!("waited {TIMEOUT:?} for {awaited}; last: {last:?}"),
            // A list costs the broker up to 30 ms of a processor, so the pause grows with the time that has passed.
            Err(_) => std::thread::sleep((start.elapsed() / 10).clamp(MIN_PAUSE, MAX_PAUSE)),
        }
    }
}

/// Calls a function for each item. Several calls run concurrently, because they spend most of their time waiting.
pub(crate) fn run_concurrently<T: Send>(workers: usize, items: impl IntoIterator<Item = T>, each: impl Fn(T) + Sync) {
    let rest: Mutex<VecDeque<T>> = Mutex::new(items.into_iter().collect());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some(item) = rest.lock().unwrap().pop_front() else { break };
                    each(item);
                }
            });
        }
    });
}
