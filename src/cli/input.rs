//! Loads specs and saved plans. The expansion of a spec depends on the broker version.

use super::arguments::{FindingsFormat, SpecArguments};
use super::connection::environment;
use super::failure::Failure;
use super::files::read_failure;
use super::sources::Sources;
use super::{files, output, sources};
use crate::expand::{Expansion, expand, expand_all};
use crate::lint::PartialSpec;
use crate::model::memory::decode;
use crate::model::{BrokerVersion, VhostName};
use crate::plan::document::FORMAT_VERSION;
use crate::plan::fingerprint::inconsistency;
use crate::plan::{Desired, Plan};
use crate::rabbitmq::BrokerProfile;
use crate::render::diagnostics::diagnostics;
use crate::render::findings;
use crate::render::shell::quote;
use crate::spec::{
    Diagnostics, Environment, SourceFile, Spec, Specs, cluster_of_environment, environments_with_errors, parse_all,
};
use std::path::Path;

/// The loaded specs: one for each vhost, and at most one for the cluster.
pub(super) struct Loaded {
    /// The cluster spec with its expansion.
    pub(super) cluster: Option<(Spec, Expansion)>,
    /// Each vhost's spec with its expansion.
    pub(super) expanded: Vec<(Spec, Expansion)>,
    /// The broker profile of each expansion.
    profiles: Vec<BrokerProfile>,
    pub(super) files: Vec<SourceFile>,
    /// The paths of the specs, as command-line arguments.
    pub(super) specs: String,
    /// The paths of the specs, as messages show them.
    pub(super) names: String,
    /// The selected environment.
    pub(super) environment: Option<Environment>,
    format: FindingsFormat,
}

/// Parses the specs, and expands each spec for the newest known version. Prints errors to standard error.
pub(super) fn load(sources: Sources) -> Result<Loaded, Failure> {
    load_for_known(sources, |_| None)
}

/// Loads the specs. Expands each spec for the broker profile that `known_profile` returns, or for the newest known
/// version if the profile is not known yet. This lets topo report errors in the specs before the broker responds.
pub(super) fn load_for_known(
    sources: Sources,
    known_profile: impl Fn(&VhostName) -> Option<BrokerProfile>,
) -> Result<Loaded, Failure> {
    let newest = BrokerProfile::of(BrokerVersion::NEWEST_KNOWN);
    load_with(sources, FindingsFormat::Text, |vhost| known_profile(vhost).unwrap_or_else(|| newest.clone()))
}

/// Loads the specs for one broker version. Prints errors in the specs to standard error in text format. In any other
/// format, the errors are the command's result, and are printed to standard output. `command` precedes the specs in
/// suggested commands.
pub(super) fn load_for(
    arguments: &SpecArguments,
    command: &str,
    format: FindingsFormat,
    version: BrokerVersion,
) -> Result<Loaded, Failure> {
    let profile = BrokerProfile::of(version);
    load_with(Sources::read(arguments, command)?, format, |_| profile.clone())
}

fn load_with(
    sources: Sources,
    format: FindingsFormat,
    profile_of: impl Fn(&VhostName) -> BrokerProfile,
) -> Result<Loaded, Failure> {
    let Sources { files, encoding_errors, variables, only, specs, names, environment } = sources;
    let (Specs { cluster, vhosts: parsed }, parse_errors) = parse_all(&files, &variables);
    let mut errors = encoding_errors.and(parse_errors);
    let expected_cluster = environment.as_ref().and_then(|environment| environment.cluster.as_ref());
    let cluster = match expected_cluster {
        Some(name) => Some(cluster_of_environment(cluster, name, &files, &mut errors)),
        None => cluster,
    };
    let mut profiles: Vec<BrokerProfile> = parsed.iter().map(|spec| profile_of(&spec.vhost.value)).collect();
    let for_each = || parsed.iter().zip(&profiles);
    // The cluster spec contains only records. Their expansion cannot fail and does not depend on the version.
    let mut cluster = cluster.map(|spec| {
        let (expansion, _) = expand_all(&spec, &BrokerProfile::of(BrokerVersion::NEWEST_KNOWN));
        (spec, expansion)
    });
    let expansions: Result<Vec<Expansion>, _> = for_each().map(|(spec, profile)| expand(spec, profile)).collect();
    let mut expanded: Vec<(Spec, Expansion)> = match expansions {
        Ok(expansions) if errors.is_empty() => parsed.into_iter().zip(expansions).collect(),
        Ok(_) | Err(_) => {
            // topo also checks the valid parts, so that one run reports all errors.
            let rest = for_each().map(|(spec, profile)| PartialSpec::new(spec, &errors).errors(profile));
            let all = rest.fold(errors.clone(), Diagnostics::and);
            return Err(print_errors(&all, &files, format));
        }
    };
    if let Some(only) = &only {
        // With `--vhost`, topo drops the cluster spec, but still checks the cluster name of the environment.
        cluster = expected_cluster.map(|name| {
            let spec = cluster_of_environment(None, name, &files, &mut Diagnostics::new());
            let (expansion, _) = expand_all(&spec, &BrokerProfile::of(BrokerVersion::NEWEST_KNOWN));
            (spec, expansion)
        });
        let declared: Vec<String> = expanded.iter().map(|(spec, _)| spec.vhost.value.to_string()).collect();
        // Specs and profiles are filtered together, so that their indexes still match.
        let is_selected = |((spec, _), _): &((Spec, Expansion), BrokerProfile)| spec.vhost.value.as_str() == only;
        (expanded, profiles) = expanded.into_iter().zip(profiles).filter(is_selected).unzip();
        if expanded.is_empty() {
            return Err(Failure::usage(format!("no spec declares vhost `{only}`"))
                .hint(format!("the specs declare {}", declared.join(", "))));
        }
    }
    Ok(Loaded { cluster, expanded, profiles, files, specs, names, environment, format })
}

impl Loaded {
    /// Returns the vhosts, in the order of their specs.
    pub(super) fn vhosts(&self) -> Vec<VhostName> {
        self.expanded.iter().map(|(spec, _)| spec.vhost.value.clone()).collect()
    }

    /// Expands a spec again if its broker profile differs from the profile that it was expanded for. `profile` returns
    /// the broker profile for the spec with the given index.
    pub(super) fn expand_for<'a>(&mut self, profile: impl Fn(usize) -> &'a BrokerProfile) -> Result<(), Failure> {
        let mut errors = Diagnostics::new();
        for (index, ((spec, expansion), assumed)) in self.expanded.iter_mut().zip(&mut self.profiles).enumerate() {
            let actual = profile(index);
            if assumed == actual {
                continue;
            }
            match expand(spec, actual) {
                Ok(new_expansion) => (*expansion, *assumed) = (new_expansion, actual.clone()),
                Err(more) => errors.extend(more),
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(print_errors(&errors, &self.files, self.format)) }
    }

    /// Changes each spec and expands it again. The positions of the changes refer to `file`.
    pub(super) fn change_specs(
        &mut self,
        profile: &BrokerProfile,
        file: SourceFile,
        mut change: impl FnMut(&mut Spec),
    ) -> Result<(), Failure> {
        self.files.push(file);
        let mut errors = Diagnostics::new();
        for (spec, expansion) in &mut self.expanded {
            change(spec);
            match expand(spec, profile) {
                Ok(new_expansion) => *expansion = new_expansion,
                Err(more) => errors.extend(more),
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(print_errors(&errors, &self.files, self.format)) }
    }

    /// Removes and returns the desired topology of the cluster.
    pub(super) fn take_cluster(&mut self) -> Option<Desired> {
        self.cluster.take().map(|(_, expansion)| expansion.into_desired())
    }

    /// Removes and returns the desired topologies of the vhosts, in the order of the specs. Drops the parsed specs,
    /// which can be large and are no longer needed.
    pub(super) fn take_desired(&mut self) -> Vec<Desired> {
        std::mem::take(&mut self.expanded).into_iter().map(|(_, expansion)| expansion.into_desired()).collect()
    }
}

/// Returns the names of the environments that the specs declare. Prints errors in the declarations.
pub(super) fn environment_names(
    arguments: &SpecArguments,
    command: &str,
    format: FindingsFormat,
) -> Result<Vec<String>, Failure> {
    let files = sources::files_without_environment(arguments, command)?;
    let (environments, errors) = environments_with_errors(&files);
    match errors.is_empty() {
        true => Ok(environments.into_iter().map(|environment| environment.name).collect()),
        false => Err(print_errors(&errors, &files, format)),
    }
}

/// Prints the errors in the specs. Returns a failure without a message. If printing fails, returns the printing error.
fn print_errors(errors: &Diagnostics, files: &[SourceFile], format: FindingsFormat) -> Failure {
    let silent = Failure::spec("");
    let printed = match format {
        FindingsFormat::Text => {
            output::eprint(&diagnostics(errors, files, true, output::width()));
            Ok(())
        }
        FindingsFormat::Json => output::print(&findings::json(errors, files, None)),
        FindingsFormat::Github => output::print(&findings::github(errors, files)),
    };
    printed.err().unwrap_or(silent)
}

/// Returns the specs and their flags as command-line arguments, for suggested commands.
pub(super) fn flags(arguments: &SpecArguments, specs: &str) -> String {
    let mut line = if specs.is_empty() { String::new() } else { format!(" {specs}") };
    if let Some(vhost) = &arguments.vhost {
        line.push_str(&format!(" --vhost {}", quote(vhost)));
    }
    if let Some(environment) = arguments.env.as_ref().filter(|name| environment("TOPO_ENV").as_ref() != Some(name)) {
        line.push_str(&format!(" --env {}", quote(environment)));
    }
    for file in &arguments.var_file {
        line.push_str(&format!(" --var-file {}", files::path_argument(file)));
    }
    // The value of TOPO_VAR also applies to the suggested command.
    let from_environment = std::env::var("TOPO_VAR").ok();
    for (name, value) in &arguments.variables {
        let assignment = format!("{name}={value}");
        if from_environment.as_ref() != Some(&assignment) {
            line.push_str(&format!(" --var {}", quote(&assignment)));
        }
    }
    line
}

/// Reads a plan that `topo plan --out` wrote. Refuses a plan that was created without a broker.
pub(super) fn saved_plan(path: &Path) -> Result<Plan, Failure> {
    let plan = any_saved_plan(path)?;
    if plan.target.cluster.is_empty() {
        return Err(Failure::usage("a plan that was created without a broker (--against) cannot be applied")
            .hint("plan against the broker: topo plan --out plan.json"));
    }
    Ok(plan)
}

/// The field of a saved plan that determines whether this version of topo can read the plan.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    format_version: Option<u64>,
}

/// Reads a plan that `topo plan --out` wrote, even if the plan was created without a broker.
pub(super) fn any_saved_plan(path: &Path) -> Result<Plan, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| read_failure(path, &error))?;
    let wrong = |error: serde_json::Error| {
        Failure::spec(format!("{} is not a plan", path.display()))
            .because(error.to_string())
            .hint("create a plan: topo plan --out plan.json")
    };
    let Header { format_version: version } = serde_json::from_str(&text).map_err(wrong)?;
    if let Some(version) = version.filter(|version| *version != u64::from(FORMAT_VERSION)) {
        return Err(Failure::spec(format!(
            "{} was written by another version of topo: it has format version {version}, but this version of topo \
             reads {FORMAT_VERSION}",
            path.display()
        ))
        .hint("plan again with this version of topo: topo plan --out plan.json"));
    }
    let plan: Plan = decode(text.len(), || serde_json::from_str(&text)).map_err(|error| match version {
        // Between releases, the format can change without a new format version.
        Some(_) => wrong(error).hint("if a different version of topo wrote the plan, plan again with this version"),
        None => wrong(error),
    })?;
    match inconsistency(&plan) {
        Some(why) => Err(Failure::spec(format!("{} was edited after topo wrote it", path.display()))
            .because(why)
            .hint("plan again: topo plan --out plan.json")),
        None => Ok(plan),
    }
}
