//! Issues of machines: rules over the state, evaluated when an administrator asks.

use std::collections::BTreeMap;

use control_convert::machine_query::matches;
use control_state::{BMC_SILENT_AFTER_MS, EventLog, Liveliness, Machine, Tables, query};
use proto_errors::{IssueCode, IssueSeverity};
use proto_public::api::v2::{
    MachineIssue, MachineIssueSeverity as Severity, MachineIssueType as Kind, MachineIssues,
    MachineIssuesQuery,
};
use proto_types::Timestamp;

/// Default age up to which an error event is an issue, milliseconds: a week.
const LAST_ERROR_AGE_MS: u64 = 7 * 24 * 3600 * 1000;

/// An issue and its details for the reader.
type Finding = (IssueCode, String);

/// All issues that the query asks for, by machine.
pub(super) fn evaluate(
    tables: &Tables,
    query: &MachineIssuesQuery,
    now: Timestamp,
) -> Vec<MachineIssues> {
    let shared = UsageCounts::of(tables);
    let threshold_ms = query
        .last_error_threshold
        .as_ref()
        .and_then(|threshold| u64::try_from(threshold.seconds).ok())
        .map_or(LAST_ERROR_AGE_MS, |seconds| seconds.saturating_mul(1000));
    let wanted = |code: IssueCode| {
        let number = kind(code) as i32;
        (query.only.is_empty() || query.only.contains(&number))
            && !query.omit.contains(&number)
            && query
                .severity
                .is_none_or(|least| severity(code) as i32 >= least)
    };
    let machines = tables
        .all::<Machine>()
        .filter(|machine| matches(tables, machine, query.machine_query.as_ref()));
    let of_machine = |machine: &std::sync::Arc<Machine>| {
        let log = tables.get::<EventLog>(&machine.id).map(AsRef::as_ref);
        let mut found = findings(machine, log, &shared, threshold_ms, now);
        cable_findings(tables, machine, &mut found);
        let issues: Vec<MachineIssue> = found
            .into_iter()
            .filter(|(code, _)| wanted(*code))
            .map(issue)
            .collect();
        (!issues.is_empty()).then(|| MachineIssues {
            uuid: machine.id.to_string(),
            issues,
        })
    };
    machines.filter_map(of_machine).collect()
}

/// Number of users of each value that only one machine may have.
struct UsageCounts {
    bmc_addresses: BTreeMap<String, usize>,
    asns: BTreeMap<u32, usize>,
}

impl UsageCounts {
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
    shared: &UsageCounts,
    threshold_ms: u64,
    now: Timestamp,
) -> Vec<Finding> {
    let mut out = Vec::new();
    if machine.partition.is_none() {
        out.push((IssueCode::NoPartition, String::new()));
    }
    bmc_findings(machine, shared, now, &mut out);
    if let Some(allocation) = &machine.allocation
        && shared
            .asns
            .get(&allocation.asn.0)
            .is_some_and(|count| *count > 1)
    {
        out.push((
            IssueCode::AsnUniqueness,
            format!("AS number {}", allocation.asn),
        ));
    }
    let Some(log) = log else {
        out.push((IssueCode::NoEventContainer, String::new()));
        return out;
    };
    match log.liveliness {
        Liveliness::Alive => {}
        Liveliness::Dead => out.push((IssueCode::LivelinessDead, String::new())),
        Liveliness::Unknown => out.push((IssueCode::LivelinessUnknown, String::new())),
        Liveliness::Unspecified => out.push((IssueCode::LivelinessNotAvailable, String::new())),
    }
    if log.crash_loop {
        out.push((IssueCode::CrashLoop, machine.reason.clone()));
    }
    if log.failed_reclaim {
        out.push((IssueCode::FailedMachineReclaim, machine.reason.clone()));
    }
    if let Some(error) = &log.last_error_event
        && now.since_ms(error.time) < threshold_ms
    {
        out.push((
            IssueCode::LastEventError,
            format!("{}: {}", error.kind, error.message),
        ));
    }
    out
}

fn cable_findings(tables: &Tables, machine: &Machine, out: &mut Vec<Finding>) {
    let disputed = query::cable_issues(tables, machine);
    if !disputed.is_empty() {
        out.push((IssueCode::CableDisputed, disputed.join("; ")));
    }
    if let Some(missing) = query::missing_cables(tables, machine) {
        out.push((IssueCode::CableMissing, missing));
    }
}

fn bmc_findings(machine: &Machine, shared: &UsageCounts, now: Timestamp, out: &mut Vec<Finding>) {
    let Some(bmc) = &machine.bmc else {
        out.push((IssueCode::BmcWithoutIp, String::new()));
        return;
    };
    if bmc.address.is_empty() {
        out.push((IssueCode::BmcWithoutIp, String::new()));
    } else if shared
        .bmc_addresses
        .get(&bmc.address)
        .is_some_and(|count| *count > 1)
    {
        out.push((IssueCode::BmcNonDistinctIp, bmc.address.clone()));
    }
    if bmc.mac.is_empty() {
        out.push((IssueCode::BmcWithoutMac, String::new()));
    }
    if machine.is_bmc_contested() {
        let claims = machine.bmc_claims.iter().filter(|claim| !claim.rejected);
        let claims: Vec<&str> = claims.map(|claim| claim.address.as_str()).collect();
        let details = format!(
            "{} is believed, {} claims it",
            bmc.address,
            claims.join(", ")
        );
        out.push((IssueCode::BmcContested, details));
    }
    if bmc.unreached || now.since_ms(bmc.updated_at) > BMC_SILENT_AFTER_MS {
        let offer = bmc
            .unreached
            .then(|| "the machine is on offer to nobody".to_owned());
        let details: Vec<String> = bmc.error.clone().into_iter().chain(offer).collect();
        out.push((IssueCode::BmcInfoOutdated, details.join("; ")));
    }
}

const fn severity(code: IssueCode) -> Severity {
    match code.severity() {
        IssueSeverity::Minor => Severity::Minor,
        IssueSeverity::Major => Severity::Major,
        IssueSeverity::Critical => Severity::Critical,
    }
}

/// The issue's type in the public contract. Issues that the contract does not know are
/// unspecified there; their `reference_url` tells them apart.
const fn kind(code: IssueCode) -> Kind {
    match code {
        IssueCode::NoPartition => Kind::NoPartition,
        IssueCode::LivelinessDead => Kind::LivelinessDead,
        IssueCode::LivelinessUnknown => Kind::LivelinessUnknown,
        IssueCode::LivelinessNotAvailable => Kind::LivelinessNotAvailable,
        IssueCode::FailedMachineReclaim => Kind::FailedMachineReclaim,
        IssueCode::CrashLoop => Kind::CrashLoop,
        IssueCode::LastEventError => Kind::LastEventError,
        IssueCode::BmcWithoutMac => Kind::BmcWithoutMac,
        IssueCode::BmcWithoutIp => Kind::BmcWithoutIp,
        IssueCode::BmcInfoOutdated => Kind::BmcInfoOutdated,
        IssueCode::AsnUniqueness => Kind::AsnUniqueness,
        IssueCode::BmcNonDistinctIp => Kind::BmcNonDistinctIp,
        IssueCode::NoEventContainer => Kind::NoEventContainer,
        IssueCode::BmcContested | IssueCode::CableDisputed | IssueCode::CableMissing => {
            Kind::Unspecified
        }
    }
}

fn issue((code, details): Finding) -> MachineIssue {
    MachineIssue {
        r#type: kind(code).into(),
        severity: severity(code).into(),
        description: code.what().to_owned(),
        reference_url: code.url(),
        details,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_has_the_names_of_the_contract() {
        let name = |kind: Kind| {
            proto_public::enum_string("metalstack.api.v2.MachineIssueType", kind as i32)
        };
        let known: Vec<Kind> = (1..=64)
            .filter_map(|number| Kind::try_from(number).ok())
            .collect();
        for kind_of_contract in &known {
            let mut codes = IssueCode::ALL.iter();
            let code = codes.find(|code| kind(**code) == *kind_of_contract);
            let code = code.map(|code| code.as_str().to_owned());
            assert_eq!(code, name(*kind_of_contract));
        }
        let of_contract = IssueCode::ALL
            .iter()
            .filter(|code| kind(**code) != Kind::Unspecified);
        assert_eq!(known.len(), of_contract.count());
    }
}
