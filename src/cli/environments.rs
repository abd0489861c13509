//! Selects an environment from the specs (`--env`).

use super::failure::Failure;
use crate::model::printable::clean;
use crate::spec::{Environment, SourceFile, closest, environments};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The environments that the specs declare, and the folders of the files that declare them.
pub(super) struct Environments(Vec<(Environment, PathBuf)>);

impl Environments {
    /// Returns the environments that the files declare. Omits invalid declarations, which `parse_all` reports.
    pub(super) fn of(files: &[SourceFile]) -> Self {
        let folder = |environment: &Environment| {
            let file = files.get(environment.at.file).map_or("", |file| file.name.as_str());
            Path::new(file).parent().map(Path::to_owned).unwrap_or_default()
        };
        Self(environments(files).into_iter().map(|environment| (environment.clone(), folder(&environment))).collect())
    }

    /// Returns the names of the environments, in the order of their declarations.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().map(|(environment, _)| environment.name.clone()).collect()
    }

    /// Returns the environment `name`. Returns `None` if `name` is `None` and the specs declare no environments.
    ///
    /// # Errors
    /// The specs declare environments but `name` is `None`, or the name is unknown.
    pub(super) fn select(&self, name: Option<&str>) -> Result<Option<&Environment>, Failure> {
        let names = self.names();
        let listed = names.iter().map(|name| clean(name)).collect::<Vec<_>>().join(", ");
        let Some(name) = name else {
            return match names.first() {
                None => Ok(None),
                Some(_) => Err(Failure::usage("the specs declare environments, but none is selected")
                    .hint(format!("select one with --env NAME: {listed}"))),
            };
        };
        if let Some((environment, _)) = self.0.iter().find(|(environment, _)| environment.name == name) {
            return Ok(Some(environment));
        }
        if names.is_empty() {
            let message = format!(
                "--env or TOPO_ENV selects environment `{}`, but the specs declare no environments",
                clean(name)
            );
            return Err(Failure::usage(message));
        }
        let failure = Failure::usage(format!("the specs declare no environment `{}`", clean(name)));
        Err(match closest(name, names.iter().map(String::as_str)) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint(format!("the specs declare {listed}")),
        })
    }

    /// Returns true if any environment has additional specs.
    pub(super) fn have_specs(&self) -> bool {
        self.0.iter().any(|(environment, _)| !environment.specs.is_empty())
    }

    /// Returns the paths of the additional specs for the selected environment.
    pub(super) fn additional_specs(&self, selected: Option<&Environment>) -> Vec<PathBuf> {
        let of_selected = self.0.iter().filter(|(it, _)| selected.is_some_and(|selected| selected.name == it.name));
        of_selected.flat_map(|(it, folder)| it.specs.iter().map(|spec| folder.join(&spec.value))).collect()
    }

    /// Returns the canonical paths of the additional specs for all other environments, which must not be read as part
    /// of a folder.
    pub(super) fn other_specs(&self, selected: Option<&Environment>) -> BTreeSet<PathBuf> {
        let canonical = |path: PathBuf| path.canonicalize().ok();
        let all = self.0.iter().flat_map(|(it, folder)| it.specs.iter().map(|spec| folder.join(&spec.value)));
        let of_selected: BTreeSet<PathBuf> =
            self.additional_specs(selected).into_iter().filter_map(canonical).collect();
        all.filter_map(canonical).filter(|path| !of_selected.contains(path)).collect()
    }
}
