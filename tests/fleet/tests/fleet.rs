//! A small data centre from delivery to the last count, against a control of its own.

use tests_fleet::{Delays, Options, Output};

fn options() -> Options {
    Options {
        machines: 60,
        partitions: 2,
        tenants_percent: 30,
        rate: 0,
        chaos: false,
        seed: None,
        chaos_every_ms: 300,
        idle_s: 0,
        delays: Delays::short(),
        patience_s: 120,
        output: Output::Text,
        metalmeshd: None,
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
