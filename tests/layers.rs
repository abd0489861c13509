//! Checks the rules of `src` on its tokens: the permitted imports of each layer, and the forbidden operations.
//!
//! Ignores comments, literals and unit tests, except for the length of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::str::FromStr;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// The permitted imports of each layer. `cli` may import all layers; `main.rs` and `lib.rs` only connect layers.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("rabbitmq", &["model"]),
    ("spec", &["rabbitmq", "model"]),
    ("expand", &["spec", "rabbitmq", "model"]),
    ("contract", &["expand", "spec", "rabbitmq", "model"]),
    ("simulation", &["contract", "rabbitmq", "model"]),
    ("cases", &["simulation", "contract", "expand", "spec", "rabbitmq", "model"]),
    ("lint", &["spec", "expand", "rabbitmq", "model"]),
    ("diff", &["model"]),
    ("plan", &["diff", "rabbitmq", "model"]),
    ("export", &["plan", "lint", "expand", "spec", "rabbitmq", "model"]),
    ("import", &["model"]),
    ("graph", &["plan", "rabbitmq", "model"]),
    ("broker", &["plan", "rabbitmq", "model"]),
    ("apply", &["broker", "plan", "rabbitmq", "model"]),
    ("operate", &["broker", "apply", "plan", "contract", "expand", "spec", "rabbitmq", "model"]),
    ("live", &["apply", "broker", "plan", "cases", "simulation", "contract", "expand", "spec", "rabbitmq", "model"]),
    (
        "render",
        &[
            "model",
            "rabbitmq",
            "spec",
            "expand",
            "contract",
            "lint",
            "diff",
            "plan",
            "graph",
            "apply",
            "operate",
            "simulation",
            "cases",
        ],
    ),
    (
        "cli",
        &[
            "model",
            "rabbitmq",
            "spec",
            "expand",
            "contract",
            "lint",
            "diff",
            "plan",
            "export",
            "import",
            "graph",
            "broker",
            "apply",
            "operate",
            "live",
            "render",
            "simulation",
            "cases",
        ],
    ),
];

/// Libraries that only certain layers may use.
const LIBRARY_LAYERS: &[(&str, &[&str])] = &[
    ("granit_parser", &["spec"]),
    ("serde_yaml", &["spec"]),
    // The schemas of plans and contracts derive from values of these layers.
    ("schemars", &["model", "spec", "contract", "diff", "plan", "operate", "render"]),
    // Only one module parses patterns.
    ("pcre2", &["rabbitmq"]),
    ("reqwest", &["broker"]),
    ("lapin", &["broker"]),
    ("tokio", &["broker", "apply", "operate", "live", "cli"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("console", &["cli"]),
    ("indicatif", &["cli"]),
    ("mimalloc", &["main.rs"]),
];

const LONGEST_FILE: usize = 400;

/// The maximum number of module cycles inside all layers. Lower it when a cycle is removed.
const MAX_CYCLES: usize = 3;

/// Returns the tokens of a source text with their lines, without comments and literals. `::` is one token.
fn tokens(source: &str) -> Vec<(usize, String)> {
    let mut flat = Vec::new();
    flatten(TokenStream::from_str(source).expect("valid Rust"), &mut flat);
    flat
}

fn flatten(stream: TokenStream, flat: &mut Vec<(usize, String)>) {
    let mut is_joint_colon = false;
    for token in stream {
        let line = token.span().start().line;
        let was_joint_colon = std::mem::take(&mut is_joint_colon);
        match token {
            TokenTree::Group(group) => {
                let [open, close] = match group.delimiter() {
                    Delimiter::Brace => ["{", "}"],
                    Delimiter::Bracket => ["[", "]"],
                    Delimiter::Parenthesis => ["(", ")"],
                    Delimiter::None => ["", ""],
                };
                flat.push((line, open.to_owned()));
                flatten(group.stream(), flat);
                flat.push((group.span_close().start().line, close.to_owned()));
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' && was_joint_colon => {
                flat.pop();
                flat.push((line, "::".to_owned()));
            }
            TokenTree::Punct(punct) => {
                is_joint_colon = punct.as_char() == ':' && punct.spacing() == Spacing::Joint;
                flat.push((line, punct.as_char().to_string()));
            }
            TokenTree::Ident(ident) => flat.push((line, ident.to_string())),
            TokenTree::Literal(_) => {}
        }
    }
}

/// Removes modules that are marked with `#[cfg(test)]`.
fn without_tests(tokens: Vec<(usize, String)>) -> Vec<(usize, String)> {
    let mark = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    let (mut kept, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        if tokens[i..].iter().map(|(_, t)| t.as_str()).take(mark.len()).eq(mark) {
            let mut depth = 0;
            while i < tokens.len() {
                match tokens[i].1.as_str() {
                    "{" => depth += 1,
                    "}" => depth -= 1,
                    _ => {}
                }
                i += 1;
                if depth == 0 && matches!(tokens[i - 1].1.as_str(), "}" | ";") {
                    break;
                }
            }
        } else {
            kept.push(tokens[i].clone());
            i += 1;
        }
    }
    kept
}

/// Returns every path of the source (`a::b::c`). Expands groups: `use a::{b, c::d}` becomes `a::b` and `a::c::d`.
fn paths(tokens: &[(usize, String)]) -> Vec<(usize, Vec<String>)> {
    let (mut found, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        i = path(tokens, i, &[], &mut found).max(i + 1);
    }
    found
}

fn path(tokens: &[(usize, String)], mut i: usize, prefix: &[String], found: &mut Vec<(usize, Vec<String>)>) -> usize {
    let token = |i: usize| tokens.get(i).map_or("", |(_, t)| t.as_str());
    let is_name = |t: &str| t == "*" || t.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut path = prefix.to_vec();
    let line = tokens[i].0;
    loop {
        if token(i) == "{" && path.len() > prefix.len() {
            i += 1;
            while i < tokens.len() && token(i) != "}" {
                i = self::path(tokens, i, &path, found).max(i + 1);
            }
            return i + 1;
        }
        if !is_name(token(i)) {
            return i;
        }
        path.push(token(i).to_owned());
        i += 1;
        if token(i) != "::" || !(is_name(token(i + 1)) || token(i + 1) == "{") {
            found.push((line, path));
            return i;
        }
        i += 1;
    }
}

/// Returns the path from the crate's root: `super::a` in `src/plan/step.rs` is `plan::a`. Returns `None` for paths
/// outside this crate.
fn from_root(file: &str, path: &[String]) -> Option<Vec<String>> {
    let mut module: Vec<String> = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    module.retain(|part| !matches!(part.as_str(), "mod" | "lib" | "main"));
    let rest = match path[0].as_str() {
        "crate" | "topo" => return Some(path[1..].to_vec()),
        "self" => &path[1..],
        "super" => {
            let ups = path.iter().take_while(|part| *part == "super").count();
            module.truncate(module.len().saturating_sub(ups));
            &path[ups..]
        }
        _ => return None,
    };
    Some(module.into_iter().chain(rest.iter().cloned()).collect())
}

/// Returns the violations of a file; `file` is its path below `src`.
fn violations(file: &str, source: &str) -> Vec<String> {
    let mut wrong = BTreeSet::new();
    let layer = file.split('/').next().unwrap_or_default();
    let joins = matches!(file, "lib.rs" | "main.rs");
    let allowed = MAY_IMPORT.iter().find(|(name, _)| *name == layer).map(|(_, allowed)| *allowed);
    if !joins && allowed.is_none() {
        wrong.insert((1, format!("`{layer}` is not a layer: add it to the table and to the drawing in lib.rs")));
    }
    if !source.starts_with("//! ") {
        wrong.insert((1, "does not begin with a `//!` summary".to_owned()));
    }
    let lines = source.lines().count();
    if lines > LONGEST_FILE {
        wrong.insert((lines, format!("{lines} lines; {LONGEST_FILE} is the limit")));
    }
    let at_the_edge = layer == "cli" || file == "main.rs";
    let tokens = if is_test(file) { Vec::new() } else { without_tests(tokens(source)) };
    for (line, path) in paths(&tokens) {
        let written = path.join("::");
        if let Some(inside) = from_root(file, &path) {
            let other = inside.first().map_or("", String::as_str);
            let is_layer = MAY_IMPORT.iter().any(|(name, _)| *name == other);
            let is_own = other == layer || (file == "main.rs" && other == "cli");
            if other == "*" {
                wrong.insert((line, "imports the whole crate".to_owned()));
            } else if is_layer && !is_own && !allowed.is_some_and(|allowed| allowed.contains(&other)) {
                wrong.insert((line, format!("`{layer}` may not import `{other}` ({written})")));
            }
        }
        for (library, homes) in LIBRARY_LAYERS {
            if path[0] == *library && !homes.contains(&layer) {
                wrong.insert((line, format!("`{library}` belongs to {} ({written})", homes.join(", "))));
            }
        }
        if path.iter().any(|name| matches!(name.as_str(), "HashMap" | "HashSet")) {
            wrong.insert((line, format!("iteration order is random ({written})")));
        }
        let edge_only =
            matches!(&path[..], [first, second, ..] if first == "std" && (second == "fs" || second == "env"));
        if edge_only && !at_the_edge {
            wrong.insert((line, format!("files and environment belong to cli ({written})")));
        }
        if path.len() > 1 && path.ends_with(&["process".to_owned(), "exit".to_owned()]) {
            wrong.insert((line, "process::exit skips what still has to be printed: return an exit code".to_owned()));
        }
    }
    for pair in tokens.windows(2) {
        let prints = matches!(pair[0].1.as_str(), "print" | "println" | "eprint" | "eprintln") && pair[1].1 == "!";
        if prints && !at_the_edge {
            wrong.insert((pair[0].0, format!("{}! belongs to cli", pair[0].1)));
        }
    }
    wrong.into_iter().map(|(line, text)| format!("src/{file}:{line}: {text}")).collect()
}

/// Returns true for a file of unit tests: `tests.rs`, or a file in a folder `tests`.
fn is_test(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.contains("/tests/")
}

/// The path of a module below the crate's root.
type Module = Vec<String>;

/// Returns, for each module of the crate, the modules that it uses.
fn dependencies(files: &[(String, String)]) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut used = BTreeMap::new();
    let mut reexported = BTreeMap::new();
    let names: BTreeSet<Module> = files
        .iter()
        .filter(|(file, _)| !is_test(file))
        .filter_map(|(file, _)| from_root(file, &["self".into()]))
        .collect();
    for (file, source) in files.iter().filter(|(file, _)| !is_test(file)) {
        let module = from_root(file, &["self".into()]).expect("a path of this crate");
        let absolute = |path: &[String]| {
            let child: Module = module.iter().chain(path.first()).cloned().collect();
            if names.contains(&child) { Some([&module, path].concat()) } else { from_root(file, path) }
        };
        let tokens = without_restrictions(&without_tests(tokens(source)));
        let is_reexport = |pair: &[(usize, String)]| pair[0].1 == "pub" && pair[1].1 == "use";
        let (mut begin, mut private) = (0, Vec::new());
        for (i, _) in tokens.windows(2).enumerate().filter(|(_, pair)| is_reexport(pair)) {
            let end = (i..tokens.len()).find(|end| tokens[*end].1 == ";").unwrap_or(tokens.len());
            for (_, path) in paths(&tokens[i + 2..end]) {
                if let (Some(path), Some(name)) = (absolute(&path), path.last()) {
                    reexported.insert([&module[..], std::slice::from_ref(name)].concat(), path);
                }
            }
            private.extend(paths(&tokens[begin..i]));
            begin = end;
        }
        private.extend(paths(&tokens[begin..]));
        // A single name is an item of this module or of another crate.
        let private = private.into_iter().filter(|(_, path)| path.len() > 1);
        used.insert(module.clone(), private.filter_map(|(_, path)| absolute(&path)).collect::<Vec<_>>());
    }
    let defined_in = |mut path: Module| {
        for _ in 0..used.len() {
            let Some(target) =
                (1..=path.len()).find_map(|n| reexported.get(&path[..n]).map(|to| [to, &path[n..]].concat()))
            else {
                break;
            };
            path = target;
        }
        (1..=path.len()).rev().map(|n| path[..n].to_vec()).find(|module| used.contains_key(module))
    };
    used.iter()
        .map(|(module, paths)| (module.clone(), paths.iter().cloned().filter_map(defined_in).collect()))
        .collect()
}

/// Reduces every `pub(…)` to `pub`, because a path in a visibility is not a use.
fn without_restrictions(tokens: &[(usize, String)]) -> Vec<(usize, String)> {
    let (mut kept, mut i): (Vec<(usize, String)>, _) = (Vec::new(), 0);
    while i < tokens.len() {
        if tokens[i].1 == "(" && kept.last().is_some_and(|(_, before)| before == "pub") {
            i += tokens[i..].iter().position(|(_, token)| token == ")").unwrap_or_default();
        } else {
            kept.push(tokens[i].clone());
        }
        i += 1;
    }
    kept
}

/// Returns the cycles of modules inside a layer: modules that use each other, directly or through other modules of the
/// layer.
fn cycles(files: &[(String, String)]) -> Vec<String> {
    let used = dependencies(files);
    let reached = |from: &Module| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(module) = open.pop() {
            for next in used.get(module).into_iter().flatten() {
                if next != module && next.first() == from.first() && reached.insert(next) {
                    open.push(next);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = used.keys().map(|module| (module, reached(module))).collect();
    let mut cycles = BTreeSet::new();
    for (module, others) in &reached {
        let mut cycle: Vec<&Module> = others.iter().filter(|other| reached[*other].contains(module)).copied().collect();
        cycle.sort();
        if cycle.len() > 1 {
            cycles.insert(cycle);
        }
    }
    let uses = |module: &Module, cycle: &[&Module]| {
        let inside = used[module].iter().filter(|other| *other != module && cycle.contains(other));
        format!("    {} uses {}", module.join("::"), inside.map(|m| m.join("::")).collect::<Vec<_>>().join(", "))
    };
    let shown = |cycle: Vec<&Module>| {
        let lines: Vec<String> = cycle.iter().map(|module| uses(module, &cycle)).collect();
        format!("{} modules:\n{}", cycle.len(), lines.join("\n"))
    };
    cycles.into_iter().map(shown).collect()
}

fn files_below(folder: &Path, root: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, root, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            files.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

fn files_of_src() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    files_below(&root, &root, &mut files);
    assert!(files.len() > 5, "no files in src");
    files.sort();
    files
}

#[test]
fn every_file_keeps_to_its_layer() {
    let files = files_of_src();
    let wrong: Vec<String> = files.iter().flat_map(|(file, source)| violations(file, source)).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn modules_do_not_form_cycles() {
    let cycles = cycles(&files_of_src());
    let found = cycles.len();
    assert!(found <= MAX_CYCLES, "{found} cycles, {MAX_CYCLES} are permitted:\n{}\n", cycles.join("\n"));
}

#[test]
fn cycles_are_found() {
    let cycles_of = |files: &[(&str, &str)]| {
        let files: Vec<_> = files.iter().map(|(file, source)| ((*file).to_owned(), (*source).to_owned())).collect();
        cycles(&files)
    };
    let two = "2 modules:\n    plan::a uses plan::b\n    plan::b uses plan::a";
    assert_eq!(cycles_of(&[("plan/a.rs", "use super::b::B;"), ("plan/b.rs", "use crate::plan::{a::A, c};")]), [two]);
    assert_eq!(cycles_of(&[("plan/a.rs", "use super::b::B;"), ("plan/b.rs", "fn f() { super::a::f() }")]), [two]);
    // A re-export is not a use. An import through a re-export is a use of the module that defines the item.
    let root = ("plan/mod.rs", "mod a; mod b; pub use a::A; pub(crate) use self::b::{B, C};");
    assert_eq!(cycles_of(&[root, ("plan/a.rs", "use super::B;"), ("plan/b.rs", "use super::A;")]), [two]);
    assert_eq!(cycles_of(&[root, ("plan/a.rs", "use super::B;"), ("plan/b.rs", "")]), [""; 0]);
    // A cycle: a module uses its child, and the child uses an item of its parent.
    let parent = ("plan/mod.rs", "mod a; pub struct P; fn f() { a::f() }");
    assert_eq!(cycles_of(&[parent, ("plan/a.rs", "use super::P;")]).len(), 1);
    assert_eq!(
        cycles_of(&[parent, ("plan/a.rs", "use std::fmt; pub(in crate::plan) fn f(x: (crate::diff::A)) {}")]),
        [""; 0]
    );
    // Unit tests and other layers are ignored.
    let tests = "#[cfg(test)]\nmod tests { use super::super::a::A; }";
    assert_eq!(cycles_of(&[("plan/a.rs", "use super::b::B;"), ("plan/b.rs", tests)]), [""; 0]);
    assert_eq!(cycles_of(&[("plan/a.rs", "use crate::diff::B;"), ("diff/mod.rs", "use crate::plan::a;")]), [""; 0]);
}

/// Returns the violations of a file with a valid beginning, without their positions.
fn complaints(file: &str, source: &str) -> Vec<String> {
    let wrong = violations(file, &format!("//! A file.\n{source}"));
    wrong.iter().map(|line| line.splitn(3, ": ").last().unwrap_or_default().to_owned()).collect()
}

#[test]
fn forbidden_imports_are_found() {
    let plan_imports = |source: &str| complaints("plan/step.rs", source);
    assert_eq!(plan_imports("use crate::broker::Snapshot;").len(), 1);
    assert_eq!(plan_imports("use crate::{diff::Change, broker};").len(), 1);
    assert_eq!(plan_imports("use crate::{\n    model::{self, Queue},\n    render::{a, b::c},\n};").len(), 2);
    assert_eq!(plan_imports("fn f() -> crate::cli::Output { crate::spec::parse() }").len(), 2);
    assert_eq!(plan_imports("use super::super::broker::Snapshot;").len(), 1);
    assert_eq!(complaints("plan/mod.rs", "pub(super) use super::broker::Snapshot;").len(), 1);
    assert_eq!(complaints("plan/a/b.rs", "use super::super::super::broker::Snapshot;").len(), 1);
    assert_eq!(plan_imports("use crate::*;"), ["imports the whole crate"]);
    assert_eq!(complaints("main.rs", "use topo::plan::Plan;").len(), 1);
    assert_eq!(complaints("helpers/mod.rs", "").len(), 1);
    assert_eq!(complaints("model/queue.rs", "use serde_yaml::Value;").len(), 1);
    assert_eq!(complaints("diff/mod.rs", "async fn f() { reqwest::get(\"\").await }").len(), 1);
}

#[test]
fn permitted_imports_are_accepted() {
    let step = "use std::fmt;\nuse serde::{Serialize, Deserialize};\nuse crate::{diff::Change, model::{Queue, spec}};\n\
                use super::{action::Action, hazard};\nuse self::inner::broker;\nuse super::broker::Snapshot;";
    assert_eq!(complaints("plan/step.rs", step), [""; 0]);
    assert_eq!(complaints("main.rs", "fn main() -> std::process::ExitCode { topo::cli::main() }"), [""; 0]);
    assert_eq!(complaints("cli/mod.rs", "use crate::broker; fn f() { println!(\"{}\", std::env::args()) }"), [""; 0]);
    let in_tests = "#[cfg(test)]\nmod tests {\n    use crate::broker::X;\n    fn f() { if a { println!() } }\n}\n";
    assert_eq!(complaints("diff/mod.rs", in_tests), [""; 0]);
    assert_eq!(complaints("diff/mod.rs", &format!("{in_tests}use crate::broker::Y;")).len(), 1);
    assert_eq!(complaints("diff/tests.rs", "use crate::broker::X;"), [""; 0]);
}

#[test]
fn forbidden_operations_are_found() {
    let found = |source: &str| complaints("diff/change.rs", source).len();
    assert_eq!(found("use std::collections::{BTreeMap, HashMap};"), 1);
    assert_eq!(found("fn f(x: HashSet<u8>) {}"), 1);
    assert_eq!(found("use std::{fmt, fs, env::var};"), 2);
    assert_eq!(found("fn f() { std::fs::read(x) }"), 1);
    assert_eq!(found("fn f() { println!(\"a\"); eprint!(\"b\") }"), 2);
    assert_eq!(found("fn f() { std::process::exit(1) }"), 1);
    assert_eq!(complaints("cli/exit.rs", "use std::process; fn f() { process::exit(1) }").len(), 1);
    assert_eq!(found(&"\n".repeat(LONGEST_FILE)), 1);
    assert_eq!(violations("diff/change.rs", "use std::fmt;\n//! Late.").len(), 1);
}

#[test]
fn comments_and_literals_are_ignored() {
    let source = r##"
        // use crate::broker;  println!()
        /* HashMap /* std::fs::read */ crate::cli::x */
        const A: &str = "crate::broker::X \" println!()";
        const B: &str = r#"std::fs " println!()"#;
        const C: [char; 3] = ['"', '\'', '\u{22}'];
        fn f<'a>(x: &'a str) -> &'a str { b"std::env"; x }
    "##;
    assert_eq!(complaints("diff/change.rs", source), [""; 0]);
    assert_eq!(complaints("diff/change.rs", &format!("{source}use crate::broker;")).len(), 1);
    assert_eq!(
        violations("model/a.rs", "//! A file.\n\n/* a\n b */\nuse crate::cli;\n")[0].split(": ").next(),
        Some("src/model/a.rs:5")
    );
}
