//! Handles signals and confirmations.
//!
//! The signals are SIGINT (Ctrl-C), SIGTERM (which pipelines send to stop a job) and SIGHUP (which a closing terminal
//! sends). To confirm a plan that can lose messages, the user must type the names of the vhosts.

use super::failure::{Exit, Failure};
use super::output;
use crate::apply::Interrupt;
use crate::plan::Plan;
use std::io::{BufRead, IsTerminal};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The stack size of the thread that runs the command: the usual stack size of a main thread on Linux.
const STACK: usize = 8 << 20;

/// True if [`interrupted`] or [`second_signal`] handles the signals.
static IS_HANDLED: AtomicBool = AtomicBool::new(false);

/// True if a command that does not handle the signals may have changed the broker.
static HAS_CHANGED: AtomicBool = AtomicBool::new(false);

/// Records that the command may change the broker from now on. Must be called by a command that changes the broker and
/// does not handle the signals.
pub(super) fn mark_changed() {
    HAS_CHANGED.store(true, Ordering::Relaxed);
}

fn interruption_failure() -> Failure {
    match HAS_CHANGED.load(Ordering::Relaxed) {
        true => Failure::failed("interrupted; the broker may have been changed").exit(Exit::Partial),
        false => Failure::failed("interrupted; nothing was changed").exit(Exit::Interrupted),
    }
}

/// Returns true if topo is the first process in a container. Linux delivers a signal to the first process only if the
/// process has a handler. Without a handler, a signal does not end the process.
pub(super) fn is_first_process() -> bool {
    std::process::id() == 1
}

/// Runs a command on another thread. Returns as soon as a signal arrives that the command does not handle, even if the
/// command is blocked.
pub(super) fn run_as_first_process(
    command: impl FnOnce() -> Result<Exit, Failure> + Send + 'static,
) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().thread_stack_size(STACK).build();
    let runtime = runtime.map_err(|error| Failure::failed("cannot start the runtime").because(error.to_string()))?;
    let command = runtime.spawn_blocking(command);
    let result = runtime.block_on(async {
        tokio::select! {
            result = command => match result {
                Ok(result) => result,
                // The task is never canceled.
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            () = unhandled_signal() => Err(interruption_failure()),
        }
    });
    runtime.shutdown_background();
    result
}

async fn unhandled_signal() {
    loop {
        stop_signal().await;
        if !IS_HANDLED.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Waits for a signal that ends a command, such as Ctrl-C. Commands that change nothing use this function.
pub(super) async fn interrupted() {
    IS_HANDLED.store(true, Ordering::Relaxed);
    stop_signal().await;
}

/// Waits for two signals. After the first signal, the current step completes and no other step starts. After the second
/// signal, the future completes, and the caller stops immediately. The default action of the signals is permanently
/// disabled by the call itself, not by the first poll of the future.
pub(super) fn second_signal(interrupt: Interrupt) -> impl Future<Output = ()> {
    IS_HANDLED.store(true, Ordering::Relaxed);
    let mut signals = StopSignals::listen();
    async move {
        signals.next().await;
        interrupt.request();
        output::eprint(
            "\nstopping after the current step; the report follows (send the signal again to stop immediately)\n",
        );
        // A terminal and a supervisor may both send the first signal.
        tokio::time::sleep(Duration::from_millis(200)).await;
        StopSignals::listen().next().await;
    }
}

async fn stop_signal() {
    StopSignals::listen().next().await;
}

/// The listeners for the signals that stop a command. The first listener for a signal permanently disables the system's
/// default action for that signal.
#[cfg(unix)]
struct StopSignals([Option<tokio::signal::unix::Signal>; 3]);

#[cfg(unix)]
impl StopSignals {
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = if is_hangup_ignored() { None } else { signal(SignalKind::hangup()).ok() };
        Self([signal(SignalKind::interrupt()).ok(), signal(SignalKind::terminate()).ok(), hangup])
    }

    async fn next(&mut self) {
        async fn received(signal: &mut Option<tokio::signal::unix::Signal>) {
            match signal {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        }
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            () = received(interrupt) => {}
            () = received(terminate) => {}
            () = received(hangup) => {}
        }
    }
}

/// Returns true if SIGHUP is ignored, as with `nohup`, so that topo outlives its terminal. A signal handler would
/// replace this setting.
#[cfg(unix)]
fn is_hangup_ignored() -> bool {
    static IGNORED: OnceLock<bool> = OnceLock::new();
    *IGNORED.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
    })
}

#[cfg(not(unix))]
struct StopSignals;

#[cfg(not(unix))]
impl StopSignals {
    fn listen() -> Self {
        Self
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Returns true if a terminal is available for a confirmation.
pub(super) fn can_confirm() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Prints a question, and returns true if the user answers `y` or `yes`.
pub(super) fn confirm(question: &str) -> Result<bool, Failure> {
    output::eprint(question);
    Ok(matches!(&*read_answer()?, "y" | "Y" | "yes"))
}

/// Reads a line and trims it. Returns an empty string at the end of the input.
fn read_answer() -> Result<String, Failure> {
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Failure::failed("cannot read the answer").because(error.to_string()))?;
    Ok(answer.trim().to_owned())
}

/// Asks the user to confirm a plan, and returns true if the user confirms. If the plan can lose messages, the answer
/// must be the names of all vhosts in the plan, separated by commas.
pub(super) fn confirm_plan(plan: &Plan) -> Result<bool, Failure> {
    let loses = plan.hazards().any(|hazard| hazard.kind.loses_messages());
    let vhosts: Vec<&str> = plan.vhosts.iter().map(|part| part.vhost.as_str()).collect();
    let expected = vhosts.join(",");
    if !loses {
        return confirm(&format!("Apply these changes to {}? [y/N] ", plan.target.url));
    }
    output::eprint(&format!("This plan can lose messages. Type the name of the vhost ({expected}) to continue: "));
    // No vhost has an empty name.
    Ok(read_answer()? == expected)
}
