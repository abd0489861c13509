//! Checks the pages of the project without a broker: their specs are valid, their links lead to an existing heading,
//! and the index lists each page. `live::guide` runs their commands.

use std::collections::BTreeSet;
use std::path::Path;

use crate::live::guide::PAGES;
use crate::support::page::{file_name, root};
use crate::support::{Page, Part, Topo};

/// Returns the documentation pages whose specs a reader can use.
fn guides() -> Vec<Page> {
    ["docs/tutorials", "docs/how-to", "docs/explanation"]
        .into_iter()
        .flat_map(Page::of_folder)
        // The specs of this page are intentionally incomplete; `editor` checks them.
        .filter(|page| page.name() != "docs/how-to/editor.md")
        .collect()
}

fn all() -> Vec<Page> {
    let mut pages: Vec<Page> =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].map(Page::read).into();
    pages.extend(Page::of_docs());
    pages
}

/// A block without `version` is a part of a spec. Pipelines are YAML, too.
#[test]
fn every_spec_is_valid() {
    let mut specs = 0;
    for page in guides().into_iter().chain(["README.md", "docs/spec.md", "docs/reference.md"].map(Page::read)) {
        for text in page.blocks("yaml") {
            let is_pipeline = text.lines().any(|line| line == "jobs:" || line == "repos:");
            // `live::guide` runs the test files.
            let is_test_file = text.lines().any(|line| line == "tests:");
            if is_pipeline || is_test_file || file_name(text).is_some_and(|name| name.starts_with('.')) {
                continue;
            }
            let is_step = text.starts_with("- ") || text.starts_with(' ');
            assert!(!is_step, "{}: a part of a pipeline: {text}", page.name());
            let is_whole = text.lines().any(|line| line.starts_with("version:"));
            let head = if is_whole { "" } else { "version: 1\nvhost: shop\n" };
            let topo = Topo::offline().file("topology.yaml", &format!("{head}{text}"));
            topo.run(["validate"]).expect_code(0).expect_text("Valid").expect_no_text("warning");
            specs += 1;
        }
    }
    assert!(specs > 7, "{specs}");
}

/// A command or a pipeline of the page calls each script that the page shows.
#[test]
fn every_script_is_run() {
    for page in PAGES.map(|path| Page::read(&format!("docs/{path}.md"))) {
        for script in page.blocks("sh") {
            let name = file_name(script).unwrap_or_else(|| panic!("{}: a script has a name: {script}", page.name()));
            let is_run =
                page.blocks("console").iter().chain(&page.blocks("yaml")).any(|it| it.contains(&format!("sh {name}")));
            assert!(is_run, "{}: no command runs {name}", page.name());
        }
    }
}

/// The index lists the pages for users, and CONTRIBUTING.md lists the pages for maintainers.
#[test]
fn every_page_is_listed() {
    let (index, contributing) = (Page::read("docs/README.md").text, Page::read("CONTRIBUTING.md").text);
    for page in Page::of_docs() {
        let name = page.name().strip_prefix("docs/").unwrap();
        let is_listed = match name.starts_with("maintainers/") {
            true => contributing.contains(&format!("(docs/{name})")) && !index.contains(name),
            false => name == "README.md" || index.contains(&format!("({name})")),
        };
        assert!(is_listed, "{} is missing in docs/README.md, or in CONTRIBUTING.md", page.name());
    }
    assert!(Page::read("README.md").text.contains("(docs/README.md)"));
}

/// The first sentence below the title states the purpose of the page.
#[test]
fn every_page_begins_with_its_purpose() {
    for page in Page::of_docs() {
        let first = page.text.lines().skip(1).find(|line| !line.is_empty()).unwrap();
        let is_purpose = [
            "In this tutorial, you ",
            "On this page, you ",
            "This page lists ",
            "This page explains ",
            "This page helps you ",
        ]
        .iter()
        .any(|start| first.starts_with(start));
        assert!(is_purpose, "{}: {first}", page.name());
    }
}

/// A table cell contains a short fact.
#[test]
fn tables_hold_no_paragraphs() {
    for page in all() {
        for part in page.parts() {
            let Part::Line(line) = part else { continue };
            let Some(row) = line.strip_prefix("| ") else { continue };
            // A list of values in code is not a paragraph.
            let words = |cell: &str| cell.split('`').step_by(2).flat_map(str::split_whitespace).count();
            assert!(!row.split(" | ").any(|cell| words(cell) > 30), "{}: {line}", page.name());
        }
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    let mut broken = Vec::new();
    for page in all() {
        let folder = root().join(page.name()).parent().unwrap().to_owned();
        for target in targets(&page) {
            links += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if path.is_empty() { root().join(page.name()) } else { folder.join(path) };
            let is_right = file.exists() && (anchor.is_empty() || anchors(&file).contains(anchor));
            if !is_right {
                broken.push(format!("{}: {target}", page.name()));
            }
        }
    }
    assert!(links > 20, "{links}");
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Returns the targets of the links of a page that lead to files of the project.
fn targets(page: &Page) -> Vec<String> {
    let mut targets = Vec::new();
    for part in page.parts() {
        let Part::Line(line) = part else { continue };
        let found = line.match_indices("](").map(|(at, _)| line[at + 2..].split(')').next().unwrap_or_default());
        targets.extend(found.filter(|it| !it.contains("://")).map(str::to_owned));
    }
    targets
}

/// Returns the anchors that GitHub generates for headings.
fn anchors(file: &Path) -> BTreeSet<String> {
    let page = Page::read(file.strip_prefix(root()).unwrap().to_str().unwrap());
    let mut anchors = BTreeSet::new();
    for part in page.parts() {
        let Part::Line(line) = part else { continue };
        let Some(heading) = line.strip_prefix('#').map(|line| line.trim_start_matches('#').trim()) else { continue };
        let kept = heading.to_lowercase().replace(' ', "-");
        let anchor: String = kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect();
        let again = (1..).map(|number| format!("{anchor}-{number}")).find(|it| !anchors.contains(it)).unwrap();
        anchors.insert(if anchors.contains(&anchor) { again } else { anchor });
    }
    anchors
}

#[test]
fn anchors_are_those_of_github() {
    let anchors = anchors(&root().join("docs/reference.md"));
    assert!(anchors.contains("exit-codes") && !anchors.contains("Exit codes"), "{anchors:?}");
}
