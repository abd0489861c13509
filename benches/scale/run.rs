//! Runs a command and measures its time, CPU time and memory.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The measurement of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) time: Duration,
    /// CPU time of the process, without the broker.
    pub(crate) cpu: Duration,
    /// The peak memory in KiB.
    pub(crate) memory: u64,
}

impl Taken {
    /// Adds the measurement of a consecutive run.
    pub(crate) fn and(self, next: Self) -> Self {
        Self { time: self.time + next.time, cpu: self.cpu + next.cpu, memory: self.memory.max(next.memory) }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.time.as_secs_f64()
    }

    pub(crate) fn cpu_ms(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e3
    }

    pub(crate) fn mib(&self) -> u64 {
        self.memory / 1024
    }
}

/// Runs a program to completion. Shows its output only if it fails.
pub(crate) fn run(program: &str, words: &[&str]) -> Taken {
    // bash reports the CPU time of a command in milliseconds. `/proc` reports it only during the run, and in ticks.
    let script = "TIMEFORMAT='%U %S'; time \"$0\" \"$@\" >/dev/null 2>\"$ERRORS\"";
    let errors = tempfile::NamedTempFile::new().unwrap();
    let start = Instant::now();
    let mut shell = Command::new("bash")
        .args(["-c", script, program])
        .args(words)
        .env("ERRORS", errors.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut memory = 0;
    let status = loop {
        memory = memory.max(memory_below(shell.id()));
        if let Some(status) = shell.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let time = start.elapsed();
    let reported = std::fs::read_to_string(errors.path()).unwrap();
    assert!(status.success(), "{program} {words:?}: {status}\n{reported}");
    let times = std::io::read_to_string(shell.stderr.take().unwrap()).unwrap();
    let seconds = times.split_whitespace().filter_map(|word| word.parse::<f64>().ok()).sum();
    Taken { time, cpu: Duration::from_secs_f64(seconds), memory }
}

/// Returns the peak memory of a child process so far, in KiB.
fn memory_below(shell: u32) -> u64 {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    let children = read(format!("/proc/{shell}/task/{shell}/children"));
    let Some(child) = children.split_whitespace().next() else { return 0 };
    // At first, the child is the shell itself, which is smaller than every measured program.
    let status = read(format!("/proc/{child}/status"));
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Describes the machine of the measurement.
pub(crate) fn machine() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let information = read("/proc/cpuinfo");
    let model = information.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    let memory = read("/proc/meminfo");
    let kilobytes = memory.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let load = read("/proc/loadavg");
    println!(
        "{processors} processors ({}), {} GiB; load before: {}",
        model.trim_start_matches(['\t', ' ', ':']),
        kilobytes >> 20,
        load.split_whitespace().next().unwrap_or("unknown"),
    );
}

/// The path of `topo`.
pub(crate) const TOPO: &str = env!("CARGO_BIN_EXE_topo");
