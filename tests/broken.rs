//! Checks the diagnostics of invalid specs. For each file or folder in `tests/broken`, the file that ends in
//! `.expected` contains the output of `topo validate`. `TOPO_UPDATE=1` rewrites these files; review their diff.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Output, Topo};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken")
}

/// Returns the names of all cases in order; the name of a file includes its extension.
pub(crate) fn cases() -> Vec<String> {
    let names = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = names.filter(|name| !name.ends_with(".expected")).collect();
    names.into_iter().collect()
}

/// Returns the files of a case, relative to `tests/broken`.
pub(crate) fn files(case: &str) -> Vec<(String, Vec<u8>)> {
    let path = folder().join(case);
    if path.is_file() {
        return vec![(case.to_owned(), fs::read(path).unwrap())];
    }
    let names = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = names.collect();
    names.into_iter().map(|name| (format!("{case}/{name}"), fs::read(path.join(&name)).unwrap())).collect()
}

/// Returns a folder with all cases.
pub(crate) fn laid_out() -> Topo {
    let topo = Topo::offline();
    for (name, bytes) in cases().iter().flat_map(|case| files(case)) {
        // Creates the folders. `Topo::write` would replace placeholders in a text, so the bytes are written afterward.
        topo.write(&name, "");
        fs::write(topo.path(&name), bytes).unwrap();
    }
    topo
}

/// Compares the output with the expected output.
fn expect(printed: &str, name: &str, wrong: &mut Vec<String>) {
    let path = folder().join(name);
    if std::env::var_os("TOPO_UPDATE").is_some() {
        fs::write(&path, printed).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected != printed {
        wrong.push(format!(
            "expected (tests/broken/{name}):\n{expected}\nfound:\n{printed}\n(TOPO_UPDATE=1 rewrites the file; review the difference)"
        ));
    }
}

/// Returns the name of the file with the expected output of a case, without its extension.
fn stem(case: &str) -> &str {
    case.trim_end_matches(".yaml").trim_end_matches(".json")
}

#[test]
fn broken_specs_produce_the_expected_diagnostics() {
    let (topo, cases, mut wrong) = (laid_out(), cases(), Vec::new());
    assert!(cases.len() >= 60, "{}", cases.len());
    for case in &cases {
        let output = topo.run(["validate", case]).expect_code(65).expect_no_result();
        expect(&output.stderr, &format!("{}.expected", stem(case)), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let known: BTreeSet<&str> = cases.iter().map(|case| stem(case)).collect();
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let of = name.trim_end_matches(".expected").trim_end_matches(".json").trim_end_matches(".github");
        assert!(known.contains(stem(of)), "{name} is of no case");
    }
}

/// Returns the codes and positions in the text output.
fn codes_and_positions(output: &Output) -> Vec<(String, String)> {
    let mut codes_and_positions = Vec::new();
    let mut lines = output.stderr.lines();
    while let Some(line) = lines.next() {
        let Some((_, rest)) = line.split_once('[').filter(|(word, _)| matches!(*word, "error" | "warning" | "info"))
        else {
            continue;
        };
        let code = rest.split(']').next().unwrap_or_default();
        // A long message continues on the next line.
        let place = lines.find_map(|line| line.trim_start().strip_prefix("--> ")).unwrap_or_default();
        // For an empty file, the output has no line and column.
        let place = if place.matches(':').count() < 2 { format!("{place}:1:1") } else { place.to_owned() };
        codes_and_positions.push((code.to_owned(), place));
    }
    codes_and_positions
}

#[test]
fn formats_agree_on_broken_specs() {
    let (topo, mut wrong) = (laid_out(), Vec::new());
    for case in cases() {
        let text = codes_and_positions(&topo.run(["validate", &case]));
        assert!(!text.is_empty(), "{case}");
        let json = topo.run(["validate", "--format", "json", &case]).expect_code(65);
        assert_eq!(json.stderr, "", "{case}");
        let place = |at: &Value| format!("{}:{}:{}", at["file"].as_str().unwrap(), at["line"], at["column"]);
        let of = |it: &Value| (it["code"].as_str().unwrap().to_owned(), place(&it["at"]));
        let found: Vec<_> = json.json()["diagnostics"].as_array().unwrap().iter().map(of).collect();
        assert_eq!(found, text, "{case} as JSON");
        let github = topo.run(["validate", "--format", "github", &case]).expect_code(65);
        assert_eq!(github.stderr, "", "{case}");
        let annotated: Vec<_> = github.stdout.lines().map(annotation).collect();
        assert_eq!(annotated, text, "{case} as annotations");
    }
    for (case, format) in [
        ("mistakes-in-two-files", "json"),
        ("mistakes-in-two-files", "github"),
        // Cases with a second position.
        ("twice-in-two-files", "json"),
        ("twice-in-two-files", "github"),
    ] {
        let output = topo.run(["validate", "--format", format, case]).expect_code(65);
        expect(&output.stdout, &format!("{case}.{format}.expected"), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Parses `::error file=…,line=…,col=…,title=CODE::…` into code and position.
fn annotation(line: &str) -> (String, String) {
    let properties = line.strip_prefix("::error ").and_then(|rest| rest.split("::").next()).unwrap_or_default();
    let value = |name: &str| {
        let start = format!("{name}=");
        properties.split(',').find_map(|property| property.strip_prefix(&start)).unwrap_or_default().to_owned()
    };
    (value("title"), format!("{}:{}:{}", value("file"), value("line"), value("col")))
}
