//! Power draw and supplies read from sushy-tools: as it is, and with the resources of DSP0268 that
//! it lacks added to its chassis.

use bmc_redfish::{Power, PowerMetric, PowerSupply, RedfishError, Trust};
use serde_json::{Value, json};

use crate::emulator::{self, Emulator, PASSWORD};
use crate::{UUID, session};

async fn read(emulator: &Emulator) -> Result<Option<Power>, RedfishError> {
    let mut session = session(emulator, Trust::Pin(emulator.pin), PASSWORD);
    let inventory = session.inventory().await.unwrap();
    session.power(&inventory).await
}

fn supply(health: &str, state: &str) -> PowerSupply {
    PowerSupply {
        health: health.into(),
        state: state.into(),
    }
}

const METRIC: PowerMetric = PowerMetric {
    average_w: 230.5,
    min_w: 198.0,
    max_w: 305.25,
    interval_min: 20.0,
};

#[tokio::test]
async fn chassis_that_tell_nothing_are_told_from_those_that_do() {
    let Some(plain) = Emulator::start(UUID) else {
        return;
    };
    assert_eq!(read(&plain).await.unwrap(), None, "it has no such resource");
    let power = Emulator::start_with(UUID, emulator::power()).unwrap();
    let expected = Power {
        metric: Some(METRIC),
        supplies: vec![
            supply("OK", "Enabled"),
            supply("Critical", "UnavailableOffline"),
            supply("", "Absent"),
        ],
    };
    assert_eq!(read(&power).await.unwrap(), Some(expected));
}

/// Resources of the newer schema; the sensor knows more than the moment when `sensor` says so.
fn newer(sensor: &Value) -> [Value; 2] {
    let link = |path: &str| json!({"@odata.id": path});
    let links = json!({
        "PowerSubsystem": link("/redfish/v1/Chassis/added/PowerSubsystem"),
        "EnvironmentMetrics": link("/redfish/v1/Chassis/added/EnvironmentMetrics"),
    });
    let supply = |health: &str| json!({"Status": {"Health": health, "State": "Enabled"}});
    let resources = json!({
        "/redfish/v1/Chassis/added/PowerSubsystem":
            {"PowerSupplies": link("/redfish/v1/Chassis/added/PowerSupplies")},
        "/redfish/v1/Chassis/added/PowerSupplies": {"Members": [
            link("/redfish/v1/Chassis/added/PowerSupplies/1"),
            link("/redfish/v1/Chassis/added/PowerSupplies/2"),
        ]},
        "/redfish/v1/Chassis/added/PowerSupplies/1": supply("OK"),
        "/redfish/v1/Chassis/added/PowerSupplies/2": supply("Warning"),
        "/redfish/v1/Chassis/added/EnvironmentMetrics": {"PowerWatts":
            {"DataSourceUri": "/redfish/v1/Chassis/added/Sensors/total", "Reading": 210}},
        "/redfish/v1/Chassis/added/Sensors/total": sensor,
    });
    [links, resources]
}

#[tokio::test]
async fn the_newer_resources_tell_the_same() {
    let sensor = json!({"Reading": 211, "AverageReading": 230.5, "LowestReading": 198,
        "PeakReading": 305.25, "AveragingInterval": "PT20M"});
    let Some(emulator) = Emulator::start_with(UUID, newer(&sensor)) else {
        return;
    };
    let supplies = vec![supply("OK", "Enabled"), supply("Warning", "Enabled")];
    let metric = Some(METRIC);
    let told = read(&emulator).await.unwrap().unwrap();
    assert_eq!(told, Power { metric, supplies });
    let [links, mut resources] = newer(&sensor);
    let all = resources.as_object_mut().unwrap();
    all.remove("/redfish/v1/Chassis/added/Sensors/total");
    let emulator = Emulator::start_with(UUID, [links, resources]).unwrap();
    let moment = PowerMetric {
        average_w: 210.0,
        min_w: 210.0,
        max_w: 210.0,
        interval_min: 0.0,
    };
    let told = read(&emulator).await.unwrap().unwrap();
    assert_eq!(
        told.metric,
        Some(moment),
        "of the moment, without the sensor"
    );
}

#[tokio::test]
async fn a_link_that_leads_nowhere_fails_alone() {
    let links = json!({"Power": {"@odata.id": "/redfish/v1/Chassis/added/Power"}});
    let Some(emulator) = Emulator::start_with(UUID, [links, json!({})]) else {
        return;
    };
    let error = read(&emulator).await.unwrap_err();
    assert!(
        matches!(error, RedfishError::Status { status: 404, .. }),
        "{error}"
    );
    let foreign = json!({"Power": {"@odata.id": "http://evil/redfish/v1"}});
    let emulator = Emulator::start_with(UUID, [foreign, json!({})]).unwrap();
    let error = read(&emulator).await.unwrap_err();
    assert!(matches!(error, RedfishError::Link(_)), "{error}");
}
