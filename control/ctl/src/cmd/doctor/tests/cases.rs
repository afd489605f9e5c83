//! Faults, each with the check that reports it.

use super::*;

/// The fault that is made, and the one check that has to report it.
pub(super) type Case = (
    &'static str,
    FindingLevel,
    &'static str,
    fn(&mut DoctorFacts),
);

pub(super) const CASES: [Case; 43] = [
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
    (
        "firewalls",
        FindingLevel::Warn,
        "metalmesh firewall roll f1",
        |facts| {
            facts.firewalls = Ok(vec![faulty("tenant-access", "somebody has keys")]);
        },
    ),
    (
        "firewalls",
        FindingLevel::Fail,
        "firewall f1 (fw): no-agent",
        |facts| {
            facts.firewalls = Ok(vec![faulty("no-agent", "nobody is there")]);
        },
    ),
    (
        "firewalls",
        FindingLevel::Warn,
        "its agent does not become 1.3.0 (failed) — expiry: it was valid",
        |facts| {
            facts.firewalls.as_mut().unwrap()[0].update = Some(FirewallUpdateStatus {
                phase: "failed".into(),
                wanted: "1.3.0".into(),
                error: "expiry: it was valid until yesterday".into(),
            });
        },
    ),
    ("firewalls", FindingLevel::Warn, "update retry", |facts| {
        facts.firewalls.as_mut().unwrap()[0].update = Some(FirewallUpdateStatus {
            phase: "refused".into(),
            wanted: "1.3.0".into(),
            error: String::new(),
        });
    }),
    (
        "firewalls",
        FindingLevel::Warn,
        "the rollout of 1.3.0 stopped in wave 2 — 1 agents failed",
        |facts| {
            facts.rollouts = Ok(vec![Rollout {
                release: Some(AgentRelease {
                    version: "1.3.0".into(),
                    ..Default::default()
                }),
                state: RolloutState::Stopped.into(),
                reason: "1 agents failed, 0 may: f1".into(),
                wave: 2,
                ..Default::default()
            }]);
        },
    ),
];
