//! Firewalls report their counters, and are asked what rules would change.

use std::time::Instant;

use control_presence::{CandidateOutcome, CounterKind, RuleCandidate};
use control_state::{FirewallStatus, RuleSetKey, RuleTarget};
use proto_firewall::{PortSpec, RuleContent, RuleOwner, RuleSpec};
use proto_mesh::{
    FirewallCandidate, FirewallCandidateReport, FirewallCandidatesRequest, FirewallCounter,
    FirewallCounterKind, FirewallRefusal, FirewallServiceClient, FirewallStatistics,
};
use tests_support::objects::text;
use uuid::Uuid;

use crate::firewall::Site;
use crate::fixture::*;

pub(crate) fn web(port: u32) -> RuleContent {
    RuleContent {
        egress_policies: vec![RuleSpec {
            name: "web".into(),
            ports: vec![PortSpec {
                port: Some(port),
                ..PortSpec::default()
            }],
            ..RuleSpec::default()
        }],
        ..RuleContent::default()
    }
}

pub(crate) fn candidate(site: &Site, set: RuleSetKey, content: RuleContent) -> RuleCandidate {
    RuleCandidate {
        id: Uuid::now_v7(),
        asker: None,
        tenant: None,
        machine: site.machine,
        allocation: site.allocation(),
        set,
        content,
    }
}

/// Asks until the firewall's agent has opened its stream.
pub(crate) async fn compare(
    site: &Site,
    set: &RuleSetKey,
    content: &RuleContent,
) -> CandidateOutcome {
    let until = Instant::now() + PATIENCE;
    loop {
        let asked = candidate(site, set.clone(), content.clone());
        let outcome = site.control.presence.firewalls().compare(asked).await;
        match outcome.unwrap() {
            CandidateOutcome::NotConnected if Instant::now() < until => {
                tokio::task::yield_now().await;
            }
            outcome => return outcome,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_stay_in_memory_and_are_of_one_allocation() {
    let site = Site::start().await;
    site.allocate_firewall().await;
    let allocation = site.allocation();
    let client: FirewallServiceClient = site.agent().await.into();
    let firewalls = site.control.presence.firewalls();
    let report = |packets: u64| FirewallStatistics {
        read_at_ms: 7,
        counters: vec![FirewallCounter {
            kind: FirewallCounterKind::Total.into(),
            name: "dropped".into(),
            packets,
            bytes: 100,
        }],
        rules: 3,
        left_out: 0,
    };
    let revision = || {
        let read = site.control.store.read_local(|tables| tables.revision());
        read.unwrap()
    };
    let before = revision();
    client.report_statistics(report(1)).await.unwrap();
    client.report_statistics(report(2)).await.unwrap();
    assert_eq!(revision(), before, "nothing is written");
    let kept = firewalls.numbers(site.machine, allocation).await.unwrap();
    let kept = kept.unwrap();
    assert_eq!((kept.rules, kept.read_at.ms()), (3, 7));
    assert_eq!(kept.counters[0].kind, CounterKind::Total);
    assert_eq!(kept.counters[0].packets, 1, "the second one came too soon");
    let other = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5eff".parse().unwrap();
    let other = firewalls.numbers(site.machine, other).await.unwrap();
    assert_eq!(other, None, "of another allocation");
    site.control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_is_compared_by_the_agent_and_written_nowhere() {
    let site = Site::start().await;
    site.allocate_firewall().await;
    let set = site.set(RuleOwner::Tenant);
    site.write(&set, 80).await;
    let asked = candidate(&site, set.clone(), web(443));
    let outcome = site.control.presence.firewalls().compare(asked).await;
    assert_eq!(outcome.unwrap(), CandidateOutcome::NotConnected);

    let client: FirewallServiceClient = site.agent().await.into();
    let mut stream = client
        .candidates(FirewallCandidatesRequest::default())
        .await
        .unwrap();
    let content = web(443);
    let answer = async {
        let asked: FirewallCandidate = next(&mut stream).await;
        let desired = asked.desired.unwrap();
        assert!(desired.seal.is_none() && desired.networks.len() > 1);
        let sent: RuleContent = serde_json::from_slice(&desired.sets[0].content).unwrap();
        assert_eq!((desired.sets.len(), &sent), (1, &content));
        let report = FirewallCandidateReport {
            id: asked.id,
            added: 1,
            removed: 2,
            refused: vec![FirewallRefusal {
                object: "cwnp egress/web".into(),
                ..FirewallRefusal::default()
            }],
            ..FirewallCandidateReport::default()
        };
        client.report_candidate(report).await.unwrap();
    };
    let (outcome, ()) = tokio::join!(compare(&site, &set, &content), answer);
    let CandidateOutcome::Compared(effect) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((effect.added, effect.removed), (1, 2));
    assert_eq!(effect.refused[0].object, "cwnp egress/web");
    // The set of a network that the firewall is not in.
    let target = RuleTarget::Network(text("internet"));
    let owner = RuleOwner::Operator;
    let outcome = compare(&site, &RuleSetKey { target, owner }, &content).await;
    let CandidateOutcome::Compared(effect) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(effect.error.contains("not for this firewall"), "{effect:?}");
    let status = site.control.store.read_local(|tables| {
        let status = tables.get::<FirewallStatus>(&site.machine);
        status.is_some()
    });
    assert!(!status.unwrap(), "a candidate is no report");
    drop(stream);
    site.control.stop().await;
}
