//! Compares the positions of the errors from topo and from the schema, as paths of keys.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_yaml::Spanned;

/// The number of the document, followed by keys and indexes.
pub(super) type Path = Vec<String>;

/// The paths that begin at each position; an anchor has several paths.
pub(super) type Places = BTreeMap<(u64, u64), BTreeSet<Path>>;

/// A value, of which only the structure is kept.
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

/// Returns the positions of all values in a text; `None` for invalid YAML.
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

/// Returns the possible paths of a position: the paths that begin there, or otherwise the last ones before it.
pub(super) fn paths_at(places: &Places, at: (u64, u64)) -> BTreeSet<Path> {
    places.range(..=at).next_back().map(|(_, paths)| paths.clone()).unwrap_or_default()
}

/// An error of the schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Complaint {
    pub(super) path: Path,
    /// True if no alternative matches, so that the cause may be below the path.
    pub(super) is_of_all_below: bool,
}

/// Returns all errors of the schema for a document.
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
            // An error about a key has the position of the mapping.
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

/// Returns true if the schema has an error at one of these paths.
pub(super) fn is_reported(paths: &BTreeSet<Path>, complaints: &BTreeSet<Complaint>) -> bool {
    let is_at = |path: &Path, it: &Complaint| it.path == *path || it.is_of_all_below && path.starts_with(&it.path);
    paths.iter().any(|path| complaints.iter().any(|complaint| is_at(path, complaint)))
}

/// Returns true if topo has an error at, above or below the path of the complaint.
pub(super) fn is_found(complaint: &Complaint, told: &[BTreeSet<Path>]) -> bool {
    told.iter().flatten().any(|path| path.starts_with(&complaint.path) || complaint.path.starts_with(path))
}
