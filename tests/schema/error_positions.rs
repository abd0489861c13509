//! Where topo finds an error and where the schema does: both as paths of keys.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_yaml::Spanned;

/// The number of the document, then keys and the numbers of items.
pub(super) type Path = Vec<String>;

/// The paths that begin at each line and column; at an anchor there are several.
pub(super) type Places = BTreeMap<(u64, u64), BTreeSet<Path>>;

/// What is written, and nothing of what it is.
enum Tree {
    Scalar,
    List(Vec<Spanned<Self>>),
    Table(Vec<(Spanned<String>, Spanned<Self>)>),
}

struct TreeVisitor;

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

macro_rules! scalars {
    ($($name:ident: $type:ty),*) => { $(fn $name<E>(self, _: $type) -> Result<Tree, E> { Ok(Tree::Scalar) })* };
}

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128, visit_f64: f64, visit_str: &str);

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut table = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            table.push(entry);
        }
        Ok(Tree::Table(table))
    }
}

/// Where everything is in a text; `None` when it is no YAML.
pub(super) fn places(text: &str) -> Option<Places> {
    let strict = serde_yaml::options! { strict_booleans: true };
    let documents: Vec<Spanned<Tree>> = serde_yaml::from_multiple_with_options(text, strict).ok()?;
    let mut places = Places::new();
    for (index, document) in documents.into_iter().enumerate() {
        add(document, &mut vec![index.to_string()], &mut places);
    }
    Some(places)
}

fn add(tree: Spanned<Tree>, path: &mut Path, places: &mut Places) {
    let mut here = |at: &serde_yaml::Location, path: &Path| {
        places.entry((at.line(), at.column())).or_default().insert(path.clone());
    };
    here(&tree.defined, path);
    match tree.value {
        Tree::Scalar => {}
        Tree::List(items) => {
            for (index, item) in items.into_iter().enumerate() {
                path.push(index.to_string());
                add(item, path, places);
                path.pop();
            }
        }
        Tree::Table(entries) => {
            for (key, value) in entries {
                path.push(key.value.clone());
                places.entry((key.defined.line(), key.defined.column())).or_default().insert(path.clone());
                add(value, path, places);
                path.pop();
            }
        }
    }
}

/// What may be meant by a place that topo names: what begins there, or else the last that begins before.
pub(super) fn paths_at(places: &Places, at: (u64, u64)) -> BTreeSet<Path> {
    places.range(..=at).next_back().map(|(_, paths)| paths.clone()).unwrap_or_default()
}

/// An error of the schema: where, and whether it may be anywhere below.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Complaint {
    pub(super) path: Path,
    /// None of several shapes fits: which one was meant, and what is wrong with it then, a schema does not know.
    pub(super) is_of_all_below: bool,
}

/// All that the schema says of a document.
pub(super) fn complaints(validator: &Validator, index: usize, document: &Value) -> BTreeSet<Complaint> {
    let mut found = BTreeSet::new();
    for error in validator.iter_errors(document) {
        let pointer = error.instance_path().to_string();
        let keys = pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~"));
        let path: Path = std::iter::once(index.to_string()).chain(keys).collect();
        let below = |names: &[String]| {
            names.iter().map(|name| [&path[..], std::slice::from_ref(name)].concat()).collect::<Vec<_>>()
        };
        let kind = error.kind();
        let is_of_all_below =
            matches!(kind, ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. });
        let paths = if let ValidationErrorKind::AdditionalProperties { unexpected } = kind {
            below(unexpected)
        } else if let ValidationErrorKind::PropertyNames { error } = kind {
            // It is about the key, and stands at the table.
            below(&[name_of(error.instance())])
        } else {
            vec![path.clone()]
        };
        found.extend(paths.into_iter().map(|path| Complaint { path, is_of_all_below }));
    }
    found
}

fn name_of(name: &Value) -> String {
    name.as_str().unwrap_or_default().to_owned()
}

/// Whether the schema says so at one of these paths.
pub(super) fn is_said(paths: &BTreeSet<Path>, complaints: &BTreeSet<Complaint>) -> bool {
    let is_at = |path: &Path, it: &Complaint| it.path == *path || it.is_of_all_below && path.starts_with(&it.path);
    paths.iter().any(|path| complaints.iter().any(|complaint| is_at(path, complaint)))
}

/// Whether topo says something of what the schema complains about: there, above or below.
pub(super) fn is_found(complaint: &Complaint, told: &[BTreeSet<Path>]) -> bool {
    told.iter().flatten().any(|path| path.starts_with(&complaint.path) || complaint.path.starts_with(path))
}
