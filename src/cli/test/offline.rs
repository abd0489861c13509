//! Runs a test file's cases in the simulation, with the topology of its spec or another topology.

use super::arguments::TestArguments;
use super::files::{ReadFile, print_diagnostics, report_errors};
use crate::cases::{Against, FileReport, OtherTopology, Subject, check, run as run_cases};
use crate::cli::failure::Failure;
use crate::cli::input::Loaded;
use crate::expand::Expansion;
use crate::rabbitmq::BrokerProfile;
use crate::spec::Spec;

/// Runs the cases in a file, once for each version.
pub(super) fn run_file(read: &ReadFile, arguments: &TestArguments) -> Result<Vec<FileReport>, Failure> {
    let mut reports: Vec<FileReport> = Vec::new();
    for version in read.versions(arguments) {
        let loaded = read.load(arguments, version)?;
        let profile = BrokerProfile::of(version);
        reports.push(offline_report(read, &loaded, (&profile, None), (arguments, reports.is_empty()))?);
    }
    Ok(reports)
}

/// Runs the cases in a file for a broker profile, with the topology of the spec or of `other`. If `warns` is true,
/// prints warnings.
pub(super) fn offline_report(
    read: &ReadFile,
    loaded: &Loaded,
    (profile, other): (&BrokerProfile, Option<(&OtherTopology, Against)>),
    (arguments, warns): (&TestArguments, bool),
) -> Result<FileReport, Failure> {
    let (spec, expansion) = checked_spec(read, loaded)?;
    let operator_policies = expansion.topology.operator_policies();
    let subject = Subject::new((spec, expansion), &operator_policies, profile);
    // Another spec may also declare external objects, so only a complete topology is certain to contain the definitions
    // of external objects.
    let knows_external = other.as_ref().is_some_and(|(other, _)| other.is_complete());
    let found = check(&read.file, &subject, knows_external);
    if found.has_errors() {
        return Err(report_errors(&found, &read.source, arguments.format));
    }
    if !found.is_empty() && warns {
        print_diagnostics(&found, &read.source, arguments.format)?;
    }
    let (subject, against) = match other {
        None => (subject, None),
        Some((other, against)) => (subject.in_other(other), Some(against)),
    };
    Ok(FileReport {
        file: read.source.name.clone(),
        specs: loaded.names.clone(),
        spec_files: spec.files.clone(),
        vhost: spec.vhost.value.clone(),
        version: profile.version,
        live: None,
        against,
        results: run_cases(&read.file, &subject, &arguments.run),
    })
}

/// Returns the spec of a test file. Returns a failure unless the loaded specs declare exactly one vhost.
pub(super) fn checked_spec<'l>(read: &ReadFile, loaded: &'l Loaded) -> Result<(&'l Spec, &'l Expansion), Failure> {
    let [(spec, expansion)] = loaded.expanded.as_slice() else {
        let vhosts: Vec<String> = loaded.vhosts().iter().map(ToString::to_string).collect();
        if vhosts.is_empty() {
            return Err(Failure::spec(format!("the specs of {} declare no vhost", read.source.name)));
        }
        return Err(Failure::spec(format!("the specs of {} declare {} vhosts", read.source.name, vhosts.len()))
            .hint(format!("add `vhost:` to the test file: {}", vhosts.join(", "))));
    };
    Ok((spec, expansion))
}
