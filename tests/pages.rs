//! The pages of the project, without a broker: their YAML is what topo takes, and their links lead somewhere. That the
//! commands of the guide do what stands there is `live::guide`'s affair.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::page::{file_name, root};
use crate::support::{Page, Part, Topo};

fn guide() -> Vec<Page> {
    Page::of_folder("docs/guide")
}

fn all() -> Vec<Page> {
    let mut pages: Vec<Page> = ["README.md", "CHANGELOG.md"].map(Page::read).into();
    pages.extend(Page::of_folder("docs"));
    pages.extend(guide());
    pages
}

/// Whole specs as they are; of a piece, what every spec begins with is left out. Pipelines are YAML, too.
#[test]
fn every_spec_is_valid() {
    let mut specs = 0;
    for page in guide().into_iter().chain(["README.md", "docs/spec.md", "docs/reference.md"].map(Page::read)) {
        for text in page.blocks("yaml") {
            let is_pipeline = text.lines().any(|line| line == "jobs:");
            if is_pipeline || file_name(text).is_some_and(|name| name.starts_with('.')) {
                continue;
            }
            let is_whole = text.lines().any(|line| line.starts_with("version:"));
            let head = if is_whole { "" } else { "version: 1\nvhost: shop\n" };
            let topo = Topo::offline().file("topology.yaml", &format!("{head}{text}"));
            topo.run(["validate"]).expect_code(0).expect_text("Valid").expect_no_text("warning");
            specs += 1;
        }
    }
    assert!(specs > 7, "{specs}");
}

/// A script that is shown is one that is called: by a command, or by a pipeline.
#[test]
fn every_script_of_the_guide_is_run() {
    for page in guide() {
        for script in page.blocks("sh") {
            let name = file_name(script).unwrap_or_else(|| panic!("{}: a script has a name: {script}", page.name()));
            let is_run =
                page.blocks("console").iter().chain(&page.blocks("yaml")).any(|it| it.contains(&format!("sh {name}")));
            assert!(is_run, "{}: nobody runs {name}", page.name());
        }
    }
}

/// The index has every page, and the README the index.
#[test]
fn every_page_of_the_guide_is_found() {
    let index = Page::read("docs/guide/README.md").text;
    for page in guide() {
        let name = Path::new(page.name()).file_name().unwrap().to_str().unwrap();
        assert!(name == "README.md" || index.contains(&format!("({name})")), "the index lacks {name}");
    }
    assert!(Page::read("README.md").text.contains("(docs/guide/README.md)"));
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

/// Where the links of a page lead, but those to elsewhere.
fn targets(page: &Page) -> Vec<String> {
    let mut targets = Vec::new();
    for part in page.parts() {
        let Part::Line(line) = part else { continue };
        let found = line.match_indices("](").map(|(at, _)| line[at + 2..].split(')').next().unwrap_or_default());
        targets.extend(found.filter(|it| !it.contains("://")).map(str::to_owned));
    }
    targets
}

/// As GitHub makes them of headings.
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
fn anchors_are_what_github_makes_of_headings() {
    let of_readme = anchors(&root().join("README.md"));
    assert!(of_readme.contains("message-safety") && !of_readme.contains("# A plan"), "{of_readme:?}");
}
