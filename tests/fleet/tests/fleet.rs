//! A small data centre from delivery to the last count, against a control of its own.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
#![allow(clippy::print_stdout, reason = "a skipped test says why")]

#[path = "../../../control/server/tests/server/collector.rs"]
mod collector;
#[path = "../../../control/server/tests/server/venv.rs"]
mod venv;

use std::collections::{BTreeMap, BTreeSet};

use collector::Collector;
use serde_json::Value;
use tests_fleet::{Delays, Options, Output};

fn options() -> Options {
    Options {
        machines: 60,
        partitions: 2,
        tenants_percent: 30,
        ipmi_percent: 25,
        bmc_nonce: false,
        rate: 0,
        chaos: false,
        seed: None,
        chaos_every_ms: 300,
        idle_s: 0,
        delays: Delays::short(),
        patience_s: 120,
        output: Output::Text,
        metalmeshd: None,
        otlp: None,
        log: false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_come_are_rented_and_come_back_clean() {
    let report = tests_fleet::run(&options(), |line| println!("{line}"))
        .await
        .unwrap();
    println!("{}", report.text());
    let json = report.json();
    assert_eq!(json["machines"], 60);
    assert_eq!(json["tenancies"]["allocated"], 18);
    assert_eq!(json["tenancies"]["freed"], 18);
    for check in [
        "no double allocation",
        "no dirty machine offered",
        "machines add up",
    ] {
        assert!(json["checks"][check].as_u64().unwrap() >= 18, "{check}");
    }
    // Over both Redfish and IPMI, from the BMC by the agent and control to the public API.
    assert_eq!(json["checks"]["power as the BMC tells it"], 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_join_with_what_their_bmc_holds() {
    let demanding = Options {
        machines: 12,
        ipmi_percent: 50,
        tenants_percent: 50,
        bmc_nonce: true,
        ..options()
    };
    let report = tests_fleet::run(&demanding, |line| println!("{line}"))
        .await
        .unwrap();
    println!("{}", report.text());
    let json = report.json();
    assert_eq!(json["tenancies"]["freed"], 6);
    // Each when it came, and those that had a tenant once more.
    let joins = json["checks"]["no machine joined without its BMC's nonce"].as_u64();
    assert!(joins.unwrap() >= 18, "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_mixed_up_while_everything_fails() {
    let wild = Options {
        chaos: true,
        machines: 40,
        tenants_percent: 25,
        ..options()
    };
    let report = tests_fleet::run(&wild, |line| println!("{line}"))
        .await
        .unwrap();
    println!("{}", report.text());
    let json = report.json();
    assert_eq!(json["tenancies"]["freed"], 10);
    assert!(
        json["chaos"]["faults"].as_object().unwrap().len() >= 4,
        "{json}"
    );
}

#[tokio::test]
async fn what_cannot_be_is_refused_by_name() {
    let wrong = Options {
        machines: 1,
        ..options()
    };
    let error = tests_fleet::run(&wrong, drop)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("--machines"), "{error}");
}

/// Names of spans by service, of one trace; each but the first is a part of one that is there.
fn parts(spans: &[&Value]) -> BTreeSet<(String, String)> {
    let text = |it: &Value, field: &str| it[field].as_str().unwrap().to_owned();
    let ids: BTreeSet<String> = spans.iter().map(|it| text(it, "id")).collect();
    assert_eq!(ids.len(), spans.len(), "an id twice: {spans:?}");
    // A machine comes up while its BMC still turns it on: the run may be over before that is told.
    let is_late = |it: &Value| it["name"] == "power-on";
    let outside = |it: &&&Value| !ids.contains(&text(it, "parent")) && !is_late(it);
    let roots: Vec<_> = spans.iter().filter(outside).collect();
    assert_eq!(roots.len(), 1, "{roots:?}");
    assert_eq!(roots[0]["parent"], "");
    let named = spans.iter();
    named
        .map(|it| (text(it, "service"), text(it, "name")))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_all_agents_do_for_a_call_is_one_trace() {
    let dir = tempfile::tempdir().unwrap();
    let Some(collector) = Collector::start(dir.path(), "spans", &[]) else {
        return;
    };
    let traced = Options {
        machines: 4,
        partitions: 1,
        tenants_percent: 50,
        otlp: Some(format!("http://127.0.0.1:{}/v1/traces", collector.port)),
        ..options()
    };
    tests_fleet::run(&traced, |line| println!("{line}"))
        .await
        .unwrap();
    let spans = collector.spans();
    let mut traces: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for span in &spans {
        let trace = span["trace"].as_str().unwrap();
        traces.entry(trace).or_default().push(span);
    }
    let of_call = |call: &str| {
        let of_call = traces
            .values()
            .filter(|it| it.iter().any(|span| span["name"] == call));
        of_call.map(|it| parts(it)).collect::<Vec<_>>()
    };
    let created = of_call("metalstack.api.v2.MachineService/Create");
    let deleted = of_call("metalstack.api.v2.MachineService/Delete");
    assert_eq!(
        (created.len(), deleted.len()),
        (2, 2),
        "{}",
        collector.text()
    );
    let has = |trace: &BTreeSet<(String, String)>, parts: &[(&str, &str)]| {
        for (service, name) in parts {
            let part = ((*service).to_owned(), (*name).to_owned());
            assert!(trace.contains(&part), "no {part:?} in {trace:?}");
        }
    };
    for trace in &created {
        has(
            trace,
            &[
                ("metalmeshd", "phase installing"),
                ("metalmesh-core", "set up port"),
                ("metalmeshd", "order boot-disk"),
                ("metalmesh-bmc", "boot-disk"),
                ("metalmeshd", "phase rebooting"),
            ],
        );
    }
    for trace in &deleted {
        has(
            trace,
            &[
                ("metalmeshd", "order power-off"),
                ("metalmesh-bmc", "power-off"),
                ("metalmesh-core", "set up port"),
                ("metalmesh-bmc", "boot-pxe"),
                ("metalmesh-pixie", "boot hammer"),
                ("metalmeshd", "phase wiping"),
            ],
        );
    }
    assert!(spans.len() < 200, "{}", spans.len());
}
