//! What is wrong with machines.

use std::collections::BTreeMap;

use control_state::{EventLog, Liveliness, Machine, Tables};
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
    match kind {
        Kind::Unspecified
        | Kind::BmcInfoOutdated
        | Kind::BmcWithoutMac
        | Kind::LivelinessNotAvailable
        | Kind::LastEventError => Severity::Minor,
        Kind::NoPartition
        | Kind::LivelinessDead
        | Kind::LivelinessUnknown
        | Kind::CrashLoop
        | Kind::BmcWithoutIp
        | Kind::NoEventContainer => Severity::Major,
        Kind::FailedMachineReclaim | Kind::AsnUniqueness | Kind::BmcNonDistinctIp => {
            Severity::Critical
        }
    }
}

fn issue((kind, details): Finding) -> MachineIssue {
    let description = match kind {
        Kind::NoPartition => "the machine has no partition",
        Kind::LivelinessDead => "the machine gives no sign of life",
        Kind::LivelinessUnknown => "the machine is silent, but a tenant has it",
        Kind::LivelinessNotAvailable => "nothing was heard of the machine yet",
        Kind::FailedMachineReclaim => "the machine phones home although it was freed",
        Kind::CrashLoop => "the machine boots again and again",
        Kind::LastEventError => "the machine had an error",
        Kind::BmcWithoutMac => "the BMC's MAC address is not known",
        Kind::BmcWithoutIp => "the BMC's address is not known",
        Kind::BmcInfoOutdated => "the BMC has not been read for a while",
        Kind::AsnUniqueness => "another machine has the same AS number",
        Kind::BmcNonDistinctIp => "another machine has the same BMC address",
        Kind::NoEventContainer => "the machine has no events",
        Kind::Unspecified => "",
    };
    MachineIssue {
        r#type: kind.into(),
        severity: severity(kind).into(),
        description: description.to_owned(),
        reference_url: String::new(),
        details,
    }
}
