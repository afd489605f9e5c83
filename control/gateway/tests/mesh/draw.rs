//! Power draw and supplies as metalmesh's own BMC agent reports them.

use control_state::{AgentKind, Draw, Machine};
use proto_mesh::*;

use crate::fixture::*;

const UUID: &str = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";

fn supply(health: &str) -> PowerSupply {
    PowerSupply {
        health: health.into(),
        state: "Enabled".into(),
    }
}

fn report(average_mw: u64, supplies: Vec<PowerSupply>) -> BmcReport {
    let metric = PowerMetric {
        average_mw,
        min_mw: 198_000,
        max_mw: 305_250,
        interval_ms: 1_200_000,
    };
    BmcReport {
        bmcs: vec![BmcStatus {
            machine_uuid: UUID.into(),
            address: "10.0.0.1:623".into(),
            power_state: "on".into(),
            draw: Some(PowerDraw {
                metric: Some(metric),
                supplies,
            }),
            ..Default::default()
        }],
    }
}

fn stored(control: &Control) -> Draw {
    let machine: &Machine = &control.machine(UUID.parse().unwrap());
    machine.bmc.clone().unwrap().draw.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_machines_draw_is_written_when_a_supply_changes_not_with_each_reading() {
    let control = Control::start().await;
    let bmc: BmcServiceClient = control.agent(AgentKind::Bmc, "p1", "bmc1").await;
    let both = |health: &str| vec![supply(health), supply("OK")];
    bmc.report(report(230_500, both("OK"))).await.unwrap();
    let first = stored(&control);
    let metric = first.metric.unwrap();
    assert_eq!((metric.average_mw, metric.min_mw), (230_500, 198_000));
    assert_eq!(
        (metric.max_mw, metric.interval_milliminutes),
        (305_250, 20_000)
    );
    assert_eq!(first.supplies.len(), 2);
    assert_eq!(
        (
            first.supplies[0].health.as_str(),
            first.supplies[0].state.as_str()
        ),
        ("OK", "Enabled")
    );
    let writes = || control.store.read_local(|t| t.revision()).unwrap();
    let before = writes();
    for n in 0..20 {
        bmc.report(report(231_000 + n, both("OK"))).await.unwrap();
    }
    assert_eq!(stored(&control), first);
    // At most the audit of how the agent came in.
    assert!(writes() - before <= 1, "{} writes", writes() - before);
    bmc.report(report(250_000, both("Critical"))).await.unwrap();
    let changed = stored(&control);
    assert_eq!(changed.metric.unwrap().average_mw, 250_000);
    assert_eq!(changed.supplies[0].health, "Critical");
    // When it gets old it is written with the newest numbers.
    control.clock.advance(11 * 60_000);
    bmc.report(report(260_000, both("Critical"))).await.unwrap();
    assert_eq!(stored(&control).metric.unwrap().average_mw, 260_000);
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn absurd_reports_are_cut_and_not_written_again() {
    let control = Control::start().await;
    let bmc: BmcServiceClient = control.agent(AgentKind::Bmc, "p1", "bmc1").await;
    let absurd = || report(u64::MAX, vec![supply(&"ü".repeat(300)); 500]);
    bmc.report(absurd()).await.unwrap();
    let cut = stored(&control);
    assert_eq!(cut.metric.unwrap().average_mw, Draw::MW_MAX);
    assert_eq!(cut.supplies.len(), Draw::SUPPLIES_MAX);
    assert_eq!(cut.supplies[0].health, "ü".repeat(Draw::WORD_LEN_MAX / 2));
    let writes = || control.store.read_local(|t| t.revision()).unwrap();
    let before = writes();
    for _ in 0..5 {
        bmc.report(absurd()).await.unwrap();
    }
    assert!(writes() - before <= 1, "{} writes", writes() - before);
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bmc_that_tells_nothing_of_power_leaves_it_out() {
    let control = Control::start().await;
    let bmc: BmcServiceClient = control.agent(AgentKind::Bmc, "p1", "bmc1").await;
    let mut silent = report(1, Vec::new());
    silent.bmcs[0].draw = None;
    bmc.report(silent).await.unwrap();
    let machine = control.machine(UUID.parse().unwrap());
    assert_eq!(machine.bmc.as_ref().unwrap().draw, None);
    control.stop().await;
}
