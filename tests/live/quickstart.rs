//! The README's first command, with the binary that is tested: it ends well and leaves nothing running.

use std::path::Path;
use std::process::Command;

use crate::support::scratch;

#[test]
fn the_quickstart_runs_to_its_end() {
    let folder = scratch::folder();
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart/run"))
        .env("TOPO_BIN", env!("CARGO_BIN_EXE_topo"))
        .env("TMPDIR", folder.path())
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    for said in ["No changes.", "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl'", "Applied: 3 steps done."] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
}
