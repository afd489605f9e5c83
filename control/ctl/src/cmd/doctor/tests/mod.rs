//! The report over facts, without anybody to ask.

mod cases;

use std::collections::BTreeSet;

use proto_public::api::v2::{MachineIssue, MachineIssueSeverity, MachineIssueType, MachineIssues};
use proto_public::metalmesh::admin::v1::{
    AgentRelease, AuditExport, ClusterServiceStatusResponse, ClusterTime, DoctorAuthority,
    DoctorBackup, DoctorServiceGetResponse, DoctorTurnedAway, DoctorUnknownMachines, FirewallFault,
    FirewallStatus, FirewallUpdateStatus, Identity, IdentityKind, Node as Member, NodeRole,
    Rollout, RolloutState,
};

use super::audit::AuditFacts;
use super::facts::DoctorFacts;
use super::level::FindingLevel;
use super::probed::{PrivateFile, ProbedAddress, ProbedNode};
use super::report::{CHECKS, TOLD_MAX, report, worst};
use cases::CASES;

const NOW_S: i64 = 1_800_000_000;

fn at(seconds: i64) -> Option<prost_types::Timestamp> {
    let seconds = NOW_S + seconds;
    Some(prost_types::Timestamp { seconds, nanos: 0 })
}

fn said(node: u64) -> DoctorServiceGetResponse {
    DoctorServiceGetResponse {
        node,
        leader: 1,
        now: at(0),
        version: "1.0.0".into(),
        feature_level: 5,
        applied: 900,
        snapshot: 0,
        purged: 0,
        snapshot_every: 10_000,
        sync_p99_us: Some(2_000),
        disk_bytes: 1000,
        disk_free_bytes: 700,
        api_certificate_ends: at(90 * 86_400),
        authority: vec![DoctorAuthority {
            id: "root".into(),
            ends: at(1000 * 86_400),
        }],
        has_schedule: true,
        backups: vec![DoctorBackup {
            place: "/var/backups".into(),
            newest: at(-3600),
            error: String::new(),
            every_minutes: 1440,
        }],
        serves_sessions: node == 1,
        ..Default::default()
    }
}

fn member(id: u64) -> Member {
    Member {
        id,
        role: if id == 1 {
            NodeRole::Leader
        } else {
            NodeRole::Voter
        }
        .into(),
        peer_address: format!("control-{id}:4444"),
        mesh_addresses: vec![format!("control-{id}:4443")],
        behind: Some(0),
        heard_at: at(0),
        feature_level: 5,
        version: "1.0.0".into(),
        ..Default::default()
    }
}

fn node(id: u64) -> ProbedNode {
    ProbedNode {
        url: format!("https://control-{id}:4443"),
        tcp_ms: Ok(1),
        said: Ok(said(id)),
        skew_ms: Some((10, 5)),
    }
}

/// Three nodes and an agent, all well.
fn well() -> DoctorFacts {
    let mesh = |node| ProbedAddress {
        node,
        address: format!("control-{node}:4443"),
        quic_ms: Ok(2),
    };
    DoctorFacts {
        now_s: NOW_S,
        context: Some(PrivateFile {
            path: "/home/ada/config.yaml".into(),
            mode: 0o600,
        }),
        keys: Vec::new(),
        nodes: (1..=3).map(node).collect(),
        mesh: (1..=3).map(mesh).collect(),
        cluster: Ok(ClusterServiceStatusResponse {
            leader: 1,
            term: 7,
            answered_by: 1,
            may_fail: 1,
            feature_level: 5,
            nodes: (1..=3).map(member).collect(),
            ..Default::default()
        }),
        identities: Ok(vec![agent()]),
        issues: Ok(Vec::new()),
        firewalls: Ok(vec![firewall()]),
        rollouts: Ok(Vec::new()),
        audit: Ok(AuditFacts {
            exports: vec![AuditExport {
                name: "siem".into(),
                behind: 3,
                ..Default::default()
            }],
            unread_max: 50_000,
        }),
    }
}

fn firewall() -> FirewallStatus {
    FirewallStatus {
        firewall: "f1".into(),
        hostname: "fw".into(),
        update: Some(FirewallUpdateStatus {
            phase: "current".into(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// A firewall with a fault.
fn faulty(code: &str, problem: &str) -> FirewallStatus {
    FirewallStatus {
        faults: vec![FirewallFault {
            code: code.into(),
            problem: problem.into(),
            remedy: "metalmesh firewall roll f1".into(),
        }],
        ..firewall()
    }
}

fn agent() -> Identity {
    Identity {
        id: "spiffe://mesh/partition/lab/core/leaf1".into(),
        kind: IdentityKind::Core.into(),
        expires_at: at(3000),
        connected: Some(true),
        ..Default::default()
    }
}

fn issue() -> MachineIssues {
    MachineIssues {
        uuid: "11111111-2222-4333-8444-555555555555".into(),
        issues: vec![MachineIssue {
            r#type: MachineIssueType::AsnUniqueness.into(),
            severity: MachineIssueSeverity::Critical.into(),
            description: "another machine has the same AS number".into(),
            ..Default::default()
        }],
    }
}

fn first(facts: &mut DoctorFacts) -> &mut DoctorServiceGetResponse {
    facts.nodes[0].said.as_mut().unwrap()
}

fn members(facts: &mut DoctorFacts) -> &mut Vec<Member> {
    &mut facts.cluster.as_mut().unwrap().nodes
}

#[test]
fn when_all_is_well_every_check_says_so() {
    let lines = report(&well(), &[], &[]);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(worst(&lines), FindingLevel::Ok, "{text}");
    let told: BTreeSet<&str> = lines.iter().map(|line| line.code).collect();
    let all: BTreeSet<&str> = CHECKS.iter().map(|check| check.code).collect();
    assert_eq!(told, all);
    assert_eq!(all.len(), CHECKS.len(), "codes are unique");
}

#[test]
fn what_is_wrong_is_told_with_why_and_how_to_mend_it() {
    for (code, level, text, breaks) in CASES {
        let mut facts = well();
        breaks(&mut facts);
        let lines = report(&facts, &[code.to_owned()], &[]);
        let shown: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(worst(&lines), level, "{code}: {shown}");
        assert!(shown.contains(text), "{code}: {text:?} is not in {shown}");
        for line in lines
            .iter()
            .filter(|line| line.found.level > FindingLevel::Ok)
        {
            let found = &line.found;
            assert!(!found.why.is_empty() && !found.mend.is_empty(), "{line}");
        }
    }
    let covered: BTreeSet<&str> = CASES.iter().map(|(code, ..)| *code).collect();
    assert_eq!(covered.len(), CHECKS.len(), "every check has a case");
}

#[test]
fn a_revoked_identity_that_knocks_and_one_that_does_not_renew() {
    let mut facts = well();
    first(&mut facts).turned_away = vec![DoctorTurnedAway {
        identity: "spiffe://mesh/partition/lab/bmc/b".into(),
        times: 3,
        last: at(-5),
    }];
    facts.identities.as_mut().unwrap()[0].expires_at = at(300);
    let lines = report(&facts, &["agents".to_owned()], &[]);
    let shown: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert!(shown.contains("was revoked, and tried 3 times"), "{shown}");
    assert!(shown.contains("5 minutes left"), "{shown}");
}

#[test]
fn a_firewall_that_is_freed_needs_no_remedy() {
    let mut facts = well();
    facts.firewalls = Ok(vec![FirewallStatus {
        freed: true,
        ..faulty("tenant-access", "somebody has keys")
    }]);
    let lines = report(&facts, &["firewalls".to_owned()], &[]);
    assert_eq!(worst(&lines), FindingLevel::Ok);
}

#[test]
fn nobody_answers() {
    let mut facts = well();
    for node in &mut facts.nodes {
        node.tcp_ms = Err("refused".into());
        node.said = Err("refused".into());
        node.skew_ms = None;
    }
    facts.mesh.clear();
    facts.cluster = Err("refused".into());
    facts.identities = Err("refused".into());
    facts.issues = Err("refused".into());
    facts.firewalls = Err("refused".into());
    let lines = report(&facts, &[], &[]);
    assert_eq!(worst(&lines), FindingLevel::Fail);
    let unknown = lines
        .iter()
        .filter(|line| line.found.what.contains("is not known"));
    assert!(unknown.count() > 8);
}

#[test]
fn many_findings_are_told_in_few_lines() {
    let mut facts = well();
    let mut silent = agent();
    silent.connected = Some(false);
    facts.identities = Ok(vec![silent; 500]);
    let lines = report(&facts, &["agents".to_owned()], &[]);
    assert_eq!(lines.len(), TOLD_MAX + 1);
    let last = lines.last().unwrap();
    assert!(last.found.what.contains("480 more") && last.found.level == FindingLevel::Warn);
}

#[test]
fn each_check_is_explained() {
    let page = include_str!("../../../../../../docs/reference/doctor.md");
    let told: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let all: Vec<&str> = CHECKS.iter().map(|check| check.code).collect();
    assert_eq!(
        told, all,
        "docs/reference/doctor.md has one section a check, in order"
    );
    let json = report(&well(), &["disk".to_owned()], &[])[0].json();
    assert_eq!(json["doc"], "docs/reference/doctor.md#disk");
}
