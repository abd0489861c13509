//! Writes exported specs to standard output, to a file, or to a folder with one file for each vhost.

use super::failure::Failure;
use super::output;
use crate::model::VhostName;
use crate::model::address::encode;
use crate::model::naming::digest;
use std::path::{Path, PathBuf};

/// The maximum length of an encoded vhost name in a file name, in bytes. Common file systems accept names of this
/// length plus the suffixes.
const MAX_NAME_BYTES: usize = 200;

/// The target of `--out`.
pub(super) enum ExportTarget {
    Output,
    File(PathBuf),
    Folder(PathBuf),
}

impl ExportTarget {
    /// Returns the target for the value of `--out`: a folder, a YAML file, a device or a pipe. A nonexistent path is a
    /// folder if it has no extension or ends with a separator. Refuses any other file.
    pub(super) fn of(out: Option<&Path>) -> Result<Self, Failure> {
        let Some(out) = out.filter(|out| out.as_os_str() != "-") else { return Ok(Self::Output) };
        let ends_with_separator = out.to_string_lossy().ends_with(std::path::is_separator);
        if out.is_dir() || ends_with_separator && !out.exists() {
            return Ok(Self::Folder(out.to_owned()));
        }
        let extension = out.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            Some("yaml" | "yml") => Ok(Self::File(out.to_owned())),
            // A device or a pipe.
            _ if out.exists() && !out.is_file() => Ok(Self::File(out.to_owned())),
            _ if out.exists() => {
                Err(Failure::usage(format!("{} is neither a directory nor a .yaml or .yml file", out.display()))
                    .hint("set --out to a .yaml or .yml file, a directory, or `-` for standard output"))
            }
            Some(_) => Err(Failure::usage(format!("{} does not have the extension .yaml or .yml", out.display()))
                .hint(format!("write to a file: --out {}", out.with_extension("yaml").display()))
                .hint(format!("or write to a directory: --out {}/", out.display()))),
            None => Ok(Self::Folder(out.to_owned())),
        }
    }

    /// Writes the text of each vhost and of the cluster. Does not replace any file if one of the files cannot be
    /// created, or if a file exists and `may_replace` is false.
    pub(super) fn write(&self, texts: &[(&VhostName, &str)], may_replace: bool) -> Result<(), Failure> {
        let all = || texts.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("---\n");
        match self {
            Self::Output => output::print(&all()),
            Self::File(path) => write(path.parent().unwrap_or(Path::new("")), &[(path.clone(), all())], may_replace),
            Self::Folder(folder) => {
                let file = |(vhost, text): &(&VhostName, &str)| (folder.join(file_name(vhost)), (*text).to_owned());
                write(folder, &texts.iter().map(file).collect::<Vec<_>>(), may_replace)
            }
        }
    }
}

/// Returns the file name for a vhost. Common file systems accept this name. Escapes a leading dot, because `topo plan
/// FOLDER` skips hidden files.
fn file_name(vhost: &VhostName) -> String {
    if vhost.is_cluster() {
        // An encoded vhost name contains no `@`.
        return "@cluster.yaml".to_owned();
    }
    let encoded = encode(vhost.as_str());
    let mut name = match encoded.strip_prefix('.') {
        Some(rest) => format!("%2E{rest}"),
        None => encoded,
    };
    if name.len() > MAX_NAME_BYTES {
        name.truncate(MAX_NAME_BYTES);
        // An escape such as `%2F` must not be split.
        let whole = name.rfind('%').filter(|at| at + 3 > name.len());
        name.truncate(whole.unwrap_or(name.len()));
        name = format!("{name}~{}", digest(vhost.as_str()));
    }
    name + ".yaml"
}

/// Writes all files. Does not replace any file if one of the files cannot be created, or if a file exists and
/// `may_replace` is false.
fn write(folder: &Path, files: &[(PathBuf, String)], may_replace: bool) -> Result<(), Failure> {
    if let Some((path, _)) = files.iter().find(|(path, _)| output::is_replaced(path) && !may_replace) {
        return Err(Failure::usage(format!("{} already exists; nothing was written", path.display()))
            .hint("choose another path, or replace the file: --force"));
    }
    if let Some((path, _)) = files.iter().find(|(path, _)| path.is_dir()) {
        return Err(Failure::usage(format!("{} is a directory; nothing was written", path.display())));
    }
    if !folder.as_os_str().is_empty() {
        std::fs::create_dir_all(folder).map_err(|error| output::write_failure(folder, &error))?;
    }
    output::write_public_files(files)
}
