//! Reads documents that declare environments: named brokers with variables and additional specs.

use super::check::check;
use super::convert::declared_twice;
use super::diagnostic::{Diagnostic, Diagnostics};
use super::environment_keys::{ENVIRONMENTS, ENVIRONMENTS_DOCUMENT};
use super::node::{Entry, Location, Node, SourceFile, Sourced, Value};
use super::shape::Shape;
use super::variables::is_name;
use super::yaml::documents;
use std::collections::{BTreeMap, BTreeSet};

/// A named environment.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The name.
    pub name: String,
    /// The position of the name.
    pub at: Location,
    /// The URL of the management API.
    pub url: Option<Sourced<String>>,
    /// The name that the cluster must have.
    pub cluster: Option<Sourced<String>>,
    /// The values of variables, by name.
    pub variables: BTreeMap<String, Sourced<String>>,
    /// The paths of additional specs, relative to the file that contains the environment.
    pub specs: Vec<Sourced<String>>,
}

/// Returns true if a document declares environments.
pub(super) fn is_environments(document: &Node) -> bool {
    document.get(ENVIRONMENTS).is_some() && document.get("vhost").is_none() && document.get("cluster").is_none()
}

/// Returns the environments that the files declare. Omits invalid parts, which [`parse_all`](super::parse_all) reports.
pub fn environments(files: &[SourceFile]) -> Vec<Environment> {
    environments_with_errors(files).0
}

/// Returns the environments that the files declare, and the problems in their declarations.
pub fn environments_with_errors(files: &[SourceFile]) -> (Vec<Environment>, Diagnostics) {
    let (mut found, mut diagnostics) = (Vec::new(), Diagnostics::new());
    for (index, file) in files.iter().enumerate().filter(|(_, file)| file.text.contains(ENVIRONMENTS)) {
        // `parse_all` reports the syntax errors.
        let mut syntax_errors = Diagnostics::new();
        for mut document in documents(index, file, &mut syntax_errors).into_iter().flatten() {
            if is_environments(&document) {
                if let Value::Table(entries) = &mut document.value {
                    // Keys that start with `x-` only define anchors.
                    entries.retain(|entry| !entry.key.starts_with("x-"));
                }
                found.extend(read(&document, &mut diagnostics));
            }
        }
    }
    check_all(&found, &mut diagnostics);
    (found, diagnostics)
}

/// Checks a document that declares environments, and returns the environments. Variables are not replaced in such a
/// document.
pub(super) fn read(document: &Node, diagnostics: &mut Diagnostics) -> Vec<Environment> {
    let shape = Shape::Object(&ENVIRONMENTS_DOCUMENT);
    let Some(checked) = check(document, shape, "this document", document.at, diagnostics) else {
        return Vec::new();
    };
    let entries = checked.get(ENVIRONMENTS).map_or(&[][..], Node::entries);
    entries.iter().map(|entry| environment(entry, diagnostics)).collect()
}

fn environment(entry: &Entry, diagnostics: &mut Diagnostics) -> Environment {
    let text = |key: &str| {
        let node = entry.node.get(key)?;
        Some(Sourced::new(node.text()?.to_owned(), node.at))
    };
    let mut variables = BTreeMap::new();
    for variable in entry.node.get("variables").map_or(&[][..], Node::entries) {
        if !is_name(&variable.key) {
            let message = format!("invalid variable name `{}`", variable.key);
            let hint = "use A-Z, a-z, 0-9 and `_`; the first character must not be a digit";
            diagnostics.push(Diagnostic::error("variable", message, variable.at).hint(hint));
            continue;
        }
        let value = match &variable.node.value {
            Value::Text(text) => text.clone(),
            Value::Integer(number) if variable.node.written.is_none() => number.to_string(),
            Value::Boolean(value) => value.to_string(),
            Value::Integer(_) | Value::Float(_) => {
                let message =
                    format!("YAML does not preserve how the number in variable `{}` is written", variable.key);
                diagnostics
                    .push(Diagnostic::error("wrong-value", message, variable.at).hint("put the value in quotes"));
                continue;
            }
            Value::Null(_) | Value::List(_) | Value::Table(_) => {
                let message = format!("the value of variable `{}` is not a string, number or boolean", variable.key);
                let hint = "use a single value, in quotes if it is not a plain string";
                diagnostics.push(Diagnostic::error("wrong-type", message, variable.at).hint(hint));
                continue;
            }
        };
        variables.insert(variable.key.clone(), Sourced::new(value, variable.at));
    }
    let specs = entry.node.get("specs").map_or(&[][..], Node::items).iter();
    Environment {
        name: entry.key.clone(),
        at: entry.at,
        url: text("url").filter(|url| !refuse_login(url, diagnostics)),
        cluster: text("cluster"),
        variables,
        specs: specs.filter_map(|node| Some(Sourced::new(node.text()?.to_owned(), node.at))).collect(),
    }
}

/// Returns true, and reports an error, if a URL contains a user name or a password.
fn refuse_login(url: &Sourced<String>, diagnostics: &mut Diagnostics) -> bool {
    let has_login = url.value.contains('@');
    if has_login {
        let diagnostic = Diagnostic::error("secret-as-text", "the URL contains a user name", url.at).label("a login");
        diagnostics.push(diagnostic.hint("remove it, and set TOPO_USERNAME and TOPO_PASSWORD"));
    }
    has_login
}

/// Reports environments that are declared twice, and environments that lack a variable that another environment sets.
pub(super) fn check_all(environments: &[Environment], diagnostics: &mut Diagnostics) {
    let mut first: BTreeMap<&str, Location> = BTreeMap::new();
    let mut setters: BTreeMap<&str, Location> = BTreeMap::new();
    for environment in environments {
        match first.get(environment.name.as_str()) {
            Some(known) => {
                diagnostics.push(declared_twice("environment", &environment.name, environment.at, *known));
            }
            None => drop(first.insert(&environment.name, environment.at)),
        }
        for (name, value) in &environment.variables {
            setters.entry(name).or_insert(value.at);
        }
    }
    let names: BTreeSet<&str> = setters.keys().copied().collect();
    for environment in environments {
        for name in names.iter().filter(|name| !environment.variables.contains_key(**name)) {
            let message = format!("environment `{}` does not set the variable `{name}`", environment.name);
            let diagnostic = Diagnostic::error("variable", message, environment.at).label("does not set it");
            let hint = format!("add `{name}` under `variables`: all environments must set the same variables");
            diagnostics.push(diagnostic.also(setters[name], "set here").hint(hint));
        }
    }
}
