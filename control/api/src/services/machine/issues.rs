//! What is wrong with machines.

use std::collections::BTreeMap;

use control_state::{EventLog, Liveliness, Machine, Tables};
use proto_errors::{IssueCode, IssueSeverity};
use proto_public::api::v2::{
    MachineIssue, MachineIssueSeverity as Severity, MachineIssueType as Kind, MachineIssues,
    MachineIssuesQuery,
};
use proto_types::Timestamp;

use crate::convert::machine_query::matches;

/// How old a BMC's report may be, milliseconds.
const BMC_REPORT_AGE_MAX_MS: u64 = 20 * 60 * 1000;
/// How long an error event counts when the query does not say, milliseconds: a week.
const LAST_ERROR_AGE_MS: u64 = 7 * 24 * 3600 * 1000;

/// One finding: what it is and what to know about it.
type Finding = (Kind, String);

/// All issues that the query asks for, by machine.
pub(super) fn evaluate(
    tables: &Tables,
    query: &MachineIssuesQuery,
    now: Timestamp,
) -> Vec<MachineIssues> {
    let shared = Shared::of(tables);
    let threshold_ms = query
        .last_error_threshold
        .as_ref()
        .and_then(|threshold| u64::try_from(threshold.seconds).ok())
        .map_or(LAST_ERROR_AGE_MS, |seconds| seconds.saturating_mul(1000));
    let wanted = |kind: Kind| {
        let number = kind as i32;
        (query.only.is_empty() || query.only.contains(&number))
            && !query.omit.contains(&number)
            && query
                .severity
                .is_none_or(|least| severity(kind) as i32 >= least)
    };
    let machines = tables
        .all::<Machine>()
        .filter(|machine| matches(tables, machine, query.machine_query.as_ref()));
    let of_machine = |machine: &std::sync::Arc<Machine>| {
        let log = tables.get::<EventLog>(&machine.id).map(AsRef::as_ref);
        let found = findings(machine, log, &shared, threshold_ms, now);
        let issues: Vec<MachineIssue> = found
            .into_iter()
            .filter(|(kind, _)| wanted(*kind))
            .map(issue)
            .collect();
        (!issues.is_empty()).then(|| MachineIssues {
            uuid: machine.id.to_string(),
            issues,
        })
    };
    machines.filter_map(of_machine).collect()
}

/// What machines must not share.
struct Shared {
    bmc_addresses: BTreeMap<String, usize>,
    asns: BTreeMap<u32, usize>,
}

impl Shared {
    fn of(tables: &Tables) -> Self {
        let mut shared = Self {
            bmc_addresses: BTreeMap::new(),
            asns: BTreeMap::new(),
        };
        for machine in tables.all::<Machine>() {
            if let Some(bmc) = machine.bmc.as_ref().filter(|bmc| !bmc.address.is_empty()) {
                *shared.bmc_addresses.entry(bmc.address.clone()).or_default() += 1;
            }
            if let Some(allocation) = &machine.allocation {
                *shared.asns.entry(allocation.asn.0).or_default() += 1;
            }
        }
        shared
    }
}

fn findings(
    machine: &Machine,
    log: Option<&EventLog>,
    shared: &Shared,
    threshold_ms: u64,
    now: Timestamp,
) -> Vec<Finding> {
    let mut out = Vec::new();
    if machine.partition.is_none() {
        out.push((Kind::NoPartition, String::new()));
    }
    bmc_findings(machine, shared, now, &mut out);
    if let Some(allocation) = &machine.allocation
        && shared
            .asns
            .get(&allocation.asn.0)
            .is_some_and(|count| *count > 1)
    {
        out.push((Kind::AsnUniqueness, format!("AS number {}", allocation.asn)));
    }
    let Some(log) = log else {
        out.push((Kind::NoEventContainer, String::new()));
        return out;
    };
    match log.liveliness {
        Liveliness::Alive => {}
        Liveliness::Dead => out.push((Kind::LivelinessDead, String::new())),
        Liveliness::Unknown => out.push((Kind::LivelinessUnknown, String::new())),
        Liveliness::Unspecified => out.push((Kind::LivelinessNotAvailable, String::new())),
    }
    if log.crash_loop {
        out.push((Kind::CrashLoop, machine.reason.clone()));
    }
    if log.failed_reclaim {
        out.push((Kind::FailedMachineReclaim, machine.reason.clone()));
    }
    if let Some(error) = &log.last_error_event
        && now.since_ms(error.time) < threshold_ms
    {
        out.push((
            Kind::LastEventError,
            format!("{}: {}", error.kind, error.message),
        ));
    }
    out
}

fn bmc_findings(machine: &Machine, shared: &Shared, now: Timestamp, out: &mut Vec<Finding>) {
    let Some(bmc) = &machine.bmc else {
        out.push((Kind::BmcWithoutIp, String::new()));
        return;
    };
    if bmc.address.is_empty() {
        out.push((Kind::BmcWithoutIp, String::new()));
    } else if shared
        .bmc_addresses
        .get(&bmc.address)
        .is_some_and(|count| *count > 1)
    {
        out.push((Kind::BmcNonDistinctIp, bmc.address.clone()));
    }
    if bmc.mac.is_empty() {
        out.push((Kind::BmcWithoutMac, String::new()));
    }
    if now.since_ms(bmc.updated_at) > BMC_REPORT_AGE_MAX_MS {
        out.push((Kind::BmcInfoOutdated, bmc.error.clone().unwrap_or_default()));
    }
}

const fn severity(kind: Kind) -> Severity {
    match code(kind) {
        None => Severity::Minor,
        Some(code) => match code.severity() {
            IssueSeverity::Minor => Severity::Minor,
            IssueSeverity::Major => Severity::Major,
            IssueSeverity::Critical => Severity::Critical,
        },
    }
}

/// The entry of the catalogue; all but the unspecified have one.
const fn code(kind: Kind) -> Option<IssueCode> {
    Some(match kind {
        Kind::Unspecified => return None,
        Kind::NoPartition => IssueCode::NoPartition,
        Kind::LivelinessDead => IssueCode::LivelinessDead,
        Kind::LivelinessUnknown => IssueCode::LivelinessUnknown,
        Kind::LivelinessNotAvailable => IssueCode::LivelinessNotAvailable,
        Kind::FailedMachineReclaim => IssueCode::FailedMachineReclaim,
        Kind::CrashLoop => IssueCode::CrashLoop,
        Kind::LastEventError => IssueCode::LastEventError,
        Kind::BmcWithoutMac => IssueCode::BmcWithoutMac,
        Kind::BmcWithoutIp => IssueCode::BmcWithoutIp,
        Kind::BmcInfoOutdated => IssueCode::BmcInfoOutdated,
        Kind::AsnUniqueness => IssueCode::AsnUniqueness,
        Kind::BmcNonDistinctIp => IssueCode::BmcNonDistinctIp,
        Kind::NoEventContainer => IssueCode::NoEventContainer,
    })
}

fn issue((kind, details): Finding) -> MachineIssue {
    let code = code(kind);
    MachineIssue {
        r#type: kind.into(),
        severity: severity(kind).into(),
        description: code.map(IssueCode::what).unwrap_or_default().to_owned(),
        reference_url: code.map(IssueCode::url).unwrap_or_default(),
        details,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_has_the_names_of_the_contract() {
        let mut known = 0;
        for number in 0..=64 {
            let Ok(kind) = Kind::try_from(number) else {
                continue;
            };
            let name = proto_public::enum_string("metalstack.api.v2.MachineIssueType", number);
            let code = code(kind).map(|it| it.as_str().to_owned());
            assert_eq!(code, name.filter(|_| kind != Kind::Unspecified));
            known += usize::from(kind != Kind::Unspecified);
        }
        assert_eq!(known, IssueCode::ALL.len());
    }
}
