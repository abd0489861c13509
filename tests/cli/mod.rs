//! Tests the command line with the real binary, without a broker.

mod retries;
use std::path::Path;

use crate::support::Output;

mod alerts;
mod cases;
mod contract;
mod environments;
mod expanded;
mod explain;
mod export;
mod fingerprints;
mod graph;
mod harness;
pub(crate) mod hostile_text;
mod junit;
mod layout;
mod lint;
pub(crate) mod memory;
mod output_files;
mod redaction;
mod routing_changes;
pub(crate) mod shells;
mod stand_ins;
mod test_against;
mod topic_permissions;
mod topology_tests;
mod usage;
mod versions;

/// Fails unless standard output equals this file of `tests/cli/expected`. `TOPO_UPDATE=1` rewrites the file.
#[track_caller]
fn expect_file(output: &Output, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/expected").join(name);
    if std::env::var_os("TOPO_UPDATE").is_some() {
        std::fs::write(&path, &output.stdout).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == output.stdout, "standard output differs from {}: {output}", path.display());
}
