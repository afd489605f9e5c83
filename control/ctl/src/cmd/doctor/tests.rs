//! The report over facts, without anybody to ask.

use std::collections::BTreeSet;

use proto_public::api::v2::{MachineIssue, MachineIssueSeverity, MachineIssueType, MachineIssues};
use proto_public::metalmesh::admin::v1::{
    AuditExport, ClusterServiceStatusResponse, ClusterTime, DoctorAuthority, DoctorBackup,
    DoctorServiceGetResponse, DoctorTurnedAway, DoctorUnknownMachines, Identity, IdentityKind,
    Node as Member, NodeRole,
};

use super::audit::AuditFacts;
use super::facts::DoctorFacts;
use super::level::FindingLevel;
use super::probed::{PrivateFile, ProbedAddress, ProbedNode};
use super::report::{CHECKS, TOLD_MAX, report, worst};

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

/// What is made wrong, and the one check that has to say so.
type Case = (
    &'static str,
    FindingLevel,
    &'static str,
    fn(&mut DoctorFacts),
);

const CASES: [Case; 38] = [
    ("context-file", FindingLevel::Fail, "chmod 600", |f| {
        f.context.as_mut().unwrap().mode = 0o644
    }),
    (
        "key-files",
        FindingLevel::Fail,
        "chmod go= /d/seal.key",
        |f| {
            first(f).exposed = vec!["/d/seal.key (mode 644)".into()];
        },
    ),
    ("key-files", FindingLevel::Fail, "/k/data.key", |f| {
        f.keys = vec![PrivateFile {
            path: "/k/data.key".into(),
            mode: 0o640,
        }];
    }),
    (
        "api",
        FindingLevel::Fail,
        "cannot be reached: refused",
        |f| {
            f.nodes[2].tcp_ms = Err("refused".into());
        },
    ),
    (
        "api-certificate",
        FindingLevel::Warn,
        "ends in 10 days",
        |f| {
            first(f).api_certificate_ends = at(10 * 86_400);
        },
    ),
    (
        "api-certificate",
        FindingLevel::Fail,
        "ends in -1 days",
        |f| {
            first(f).api_certificate_ends = at(-5);
        },
    ),
    ("api-certificate", FindingLevel::Fail, "plain HTTP", |f| {
        f.nodes[0].url = "http://control-1:4443".into();
        first(f).api_certificate_ends = None;
    }),
    (
        "cluster-time",
        FindingLevel::Fail,
        "metalmesh cluster accept-time",
        |facts| {
            facts.cluster.as_mut().unwrap().time = Some(ClusterTime {
                restored_from: None,
                time: at(-10),
                held: at(86_400),
                held_node: 2,
            });
        },
    ),
    (
        "cluster-time",
        FindingLevel::Warn,
        "restored from a backup",
        |facts| {
            facts.cluster.as_mut().unwrap().time = Some(ClusterTime {
                time: at(-10),
                restored_from: at(-86_400),
                ..Default::default()
            });
        },
    ),
    ("cluster-time", FindingLevel::Warn, "300 s ahead", |facts| {
        facts.cluster.as_mut().unwrap().time = Some(ClusterTime {
            time: at(300),
            ..Default::default()
        });
    }),
    ("mesh", FindingLevel::Warn, "drops UDP", |f| {
        f.mesh[1].quic_ms = Err("no answer".into())
    }),
    ("mesh", FindingLevel::Fail, "drops UDP", |f| {
        f.mesh
            .iter_mut()
            .for_each(|probed| probed.quic_ms = Err("no answer".into()));
    }),
    ("clock", FindingLevel::Warn, "3000 ms behind", |f| {
        f.nodes[1].skew_ms = Some((-3000, 10))
    }),
    ("clock", FindingLevel::Fail, "600000 ms ahead", |f| {
        f.nodes[1].skew_ms = Some((600_000, 10))
    }),
    ("nodes-asked", FindingLevel::Warn, "node 3", |f| {
        f.nodes.pop();
    }),
    ("leader", FindingLevel::Fail, "nobody leads", |f| {
        f.cluster.as_mut().unwrap().leader = 0
    }),
    ("leader", FindingLevel::Fail, "no answer in 10 s", |f| {
        f.cluster = Err("no answer in 10 s".into());
    }),
    ("quorum", FindingLevel::Warn, "node 3 is not heard", |f| {
        f.nodes[2].said = Err("gone".into());
        members(f)[2].heard_at = at(-60);
    }),
    (
        "quorum",
        FindingLevel::Fail,
        "1 of 3 voters are there",
        |f| {
            for at_place in [1, 2] {
                f.nodes[at_place].said = Err("gone".into());
                members(f)[at_place].heard_at = None;
            }
        },
    ),
    ("quorum", FindingLevel::Warn, "one node alone", |f| {
        members(f).truncate(1)
    }),
    (
        "lag",
        FindingLevel::Warn,
        "node 2 is 5000 entries behind",
        |f| {
            members(f)[1].behind = Some(5_000);
        },
    ),
    ("lag", FindingLevel::Fail, "50000 entries", |f| {
        members(f)[1].behind = Some(50_000)
    }),
    (
        "versions",
        FindingLevel::Warn,
        "node 2: 0.9.0 (level 4)",
        |f| {
            let old = &mut members(f)[1];
            (old.version, old.feature_level) = ("0.9.0".into(), 4);
        },
    ),
    ("log-sync", FindingLevel::Warn, "150.0 ms", |f| {
        first(f).sync_p99_us = Some(150_000)
    }),
    ("log-sync", FindingLevel::Fail, "2000.0 ms", |f| {
        first(f).sync_p99_us = Some(2_000_000)
    }),
    ("disk", FindingLevel::Warn, "10 %", |f| {
        first(f).disk_free_bytes = 100
    }),
    ("disk", FindingLevel::Fail, "1 %", |f| {
        first(f).disk_free_bytes = 10
    }),
    ("snapshot", FindingLevel::Warn, "90000 entries", |f| {
        first(f).applied = 90_000
    }),
    (
        "audit-exports",
        FindingLevel::Warn,
        "12000 records behind",
        |f| {
            if let Ok(audit) = &mut f.audit {
                audit.exports[0].behind = 12_000;
            }
        },
    ),
    (
        "audit-exports",
        FindingLevel::Fail,
        "26000 records behind",
        |f| {
            if let Ok(audit) = &mut f.audit {
                audit.exports[0].behind = 26_000;
            }
        },
    ),
    (
        "backup",
        FindingLevel::Warn,
        "no backups are scheduled",
        |f| {
            for node in &mut f.nodes {
                node.said.as_mut().unwrap().has_schedule = false;
            }
        },
    ),
    ("backup", FindingLevel::Fail, "disk full", |f| {
        first(f).backups[0].error = "disk full".into()
    }),
    ("backup", FindingLevel::Warn, "4000 minutes old", |f| {
        first(f).backups[0].newest = at(-4000 * 60);
    }),
    (
        "authority",
        FindingLevel::Warn,
        "metalmesh ca rotate",
        |f| {
            first(f).authority[0].ends = at(20 * 86_400);
        },
    ),
    (
        "partitions",
        FindingLevel::Fail,
        "\"lab\" is not observed",
        |f| {
            first(f).unobserved_partitions = vec!["lab".into()];
        },
    ),
    (
        "partitions",
        FindingLevel::Warn,
        "9 unknown machines that never registered",
        |f| {
            first(f).unknown_machines = vec![DoctorUnknownMachines {
                partition: "lab".into(),
                machines: 9,
                macs: vec!["02:00:00:00:00:01".into()],
                is_full: false,
            }];
        },
    ),
    (
        "agents",
        FindingLevel::Warn,
        "partition/lab/core/leaf1 is silent",
        |f| {
            f.identities.as_mut().unwrap()[0].connected = Some(false);
        },
    ),
    (
        "machines",
        FindingLevel::Fail,
        "1 machine: asn-not-unique (critical)",
        |f| {
            f.issues.as_mut().unwrap().push(issue());
        },
    ),
];

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
    let page = include_str!("../../../../../docs/reference/doctor.md");
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
