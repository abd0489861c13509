//! Computes how much of each spec its test files cover.

use super::arguments::TestArguments;
use super::files::{ReadFile, spec_arguments};
use crate::cases::{CoverageReport, Subject, TestFile, coverage};
use crate::cli::arguments::FindingsFormat;
use crate::cli::failure::Failure;
use crate::cli::input;
use crate::rabbitmq::BrokerProfile;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Returns the coverage of the specs, for the newest version that their test files run on.
pub(super) fn compute(read: &[ReadFile], arguments: &TestArguments) -> Result<Vec<CoverageReport>, Failure> {
    let mut groups: BTreeMap<(Vec<PathBuf>, Option<String>), Vec<&ReadFile>> = BTreeMap::new();
    for file in read {
        let vhost = file.file.vhost.as_ref().map(|vhost| vhost.value.clone());
        groups.entry((file.specs.clone(), vhost)).or_default().push(file);
    }
    let mut reports = Vec::new();
    for ((paths, vhost), files) in groups {
        let Some(version) = files.iter().flat_map(|file| file.versions(arguments)).max() else { continue };
        let specs = spec_arguments(paths, vhost, arguments);
        let mut report: Option<CoverageReport> = None;
        for files in group_by_stand_ins(files) {
            let mut loaded = input::load_for(&specs, "topo test", FindingsFormat::Text, version)?;
            let with_stand_ins = files.first().filter(|file| !file.file.stand_ins.is_empty());
            if let Some(file) = with_stand_ins {
                // The test run has already reported the errors in the stand-ins.
                loaded.change_specs(&BrokerProfile::of(version), file.source.clone(), |spec| {
                    file.file.stand_ins.apply(spec, &file.source.name);
                })?;
            }
            // Each test file tests one vhost.
            let Some((spec, expansion)) = loaded.expanded.first() else { continue };
            let profile = BrokerProfile::of(version);
            let operator_policies = expansion.topology.operator_policies();
            let subject = Subject::new((spec, expansion), &operator_policies, &profile);
            let files: Vec<&TestFile> = files.iter().map(|file| &file.file).collect();
            let found = coverage(files, &subject, with_stand_ins.map(|file| file.source.name.as_str()));
            match &mut report {
                Some(report) => report.coverage.merge(found),
                None => {
                    report = Some(CoverageReport {
                        specs: loaded.names.clone(),
                        spec_files: spec.files.clone(),
                        vhost: spec.vhost.value.clone(),
                        version,
                        coverage: found,
                    });
                }
            }
        }
        reports.extend(report);
    }
    Ok(reports)
}

/// Groups test files by their stand-ins.
fn group_by_stand_ins(files: Vec<&ReadFile>) -> Vec<Vec<&ReadFile>> {
    let mut groups: Vec<Vec<&ReadFile>> = Vec::new();
    for file in files {
        match groups.iter_mut().find(|group| group.iter().any(|it| it.file.stand_ins == file.file.stand_ins)) {
            Some(group) => group.push(file),
            None => groups.push(vec![file]),
        }
    }
    groups
}

/// Returns a failure if the coverage of a spec is below the limit.
pub(super) fn coverage_failure(reports: &[CoverageReport], limit: Option<f64>) -> Option<Failure> {
    let limit = limit?;
    let low = reports.iter().find(|report| report.coverage.percent() < limit)?;
    let message = format!("the coverage of {} is {:.1}%, below {limit}%", low.specs, low.coverage.percent());
    Some(Failure::failed(message).hint("add cases for the uncovered elements (list them with --coverage), or record a snapshot with `topo test --init`"))
}
