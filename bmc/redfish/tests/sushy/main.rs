//! The client against a BMC that is not ours: OpenStack's sushy-tools over TLS, on loopback.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where its ground is missing"
)]

mod emulator;
mod power;

use std::time::{Duration, Instant};

use bmc_redfish::{
    BootOverride, BootTarget, Credentials, Endpoint, Led, PowerState, RedfishError, Reset, Session,
    System, Timing, Trust,
};
use emulator::{Emulator, PASSWORD};

const UUID: &str = "6f1c0001-0000-4000-8000-525400770102";
const WAIT: Duration = Duration::from_secs(60);
/// Pause between two looks at a condition, which leaves the processors to the one that is waited for.
const POLL: Duration = Duration::from_millis(10);

fn session(emulator: &Emulator, trust: Trust, password: &str) -> Session {
    let endpoint = Endpoint {
        address: emulator.address,
        trust,
    };
    let credentials = Credentials::new("admin", password);
    Session::new(endpoint, credentials, Timing::default()).unwrap()
}

async fn power_becomes(session: &mut Session, system: &System, want: PowerState) {
    let end = Instant::now() + WAIT;
    while session.refresh(system).await.unwrap().power != want {
        assert!(Instant::now() < end, "the power does not become {want:?}");
        tokio::time::sleep(POLL).await;
    }
}

#[tokio::test]
async fn inventory_power_boot_and_light() {
    let Some(emulator) = Emulator::start(UUID) else {
        return;
    };
    let mut session = session(&emulator, Trust::Pin(emulator.pin), PASSWORD);
    let inventory = session.inventory().await.unwrap();
    let system = inventory.system;
    assert_eq!(system.uuid, UUID);
    assert_eq!(system.manufacturer, "Sushy Emulator");
    assert_eq!(system.power, PowerState::Off);
    assert_eq!(inventory.chassis.manufacturer, "Contoso");
    assert!(
        !inventory.manager.firmware_version.is_empty(),
        "{:?}",
        inventory.manager
    );

    session.reset(&system, Reset::On).await.unwrap();
    power_becomes(&mut session, &system, PowerState::On).await;
    session.reset(&system, Reset::ForceRestart).await.unwrap();
    power_becomes(&mut session, &system, PowerState::On).await;
    let no_cycle = session.reset(&system, Reset::PowerCycle).await.unwrap_err();
    assert!(
        matches!(no_cycle, RedfishError::Unsupported { .. }),
        "{no_cycle}"
    );
    session.reset(&system, Reset::ForceOff).await.unwrap();
    power_becomes(&mut session, &system, PowerState::Off).await;

    for target in [BootTarget::Pxe, BootTarget::Disk] {
        let boot = BootOverride {
            target,
            persistent: true,
        };
        assert!(session.set_boot(&system, boot).await.unwrap(), "it lasts");
    }
    let bios = BootOverride {
        target: BootTarget::BiosSetup,
        persistent: false,
    };
    let refused = session.set_boot(&system, bios).await.unwrap_err();
    assert!(
        refused.to_string().contains("it allows Pxe, Cd, Hdd"),
        "{refused}"
    );

    // Its systems have no asset tag, and it says what it takes instead.
    let untagged = session.set_asset_tag(&system, "mm-a").await.unwrap_err();
    assert!(
        matches!(untagged, RedfishError::Status { status: 400, .. }),
        "{untagged}"
    );

    for (on, led) in [(true, Led::On), (false, Led::Off)] {
        session.set_led(&system, on).await.unwrap();
        assert_eq!(session.refresh(&system).await.unwrap().led, Some(led));
    }
}

#[tokio::test]
async fn a_foreign_certificate_and_a_wrong_password_are_refused() {
    let Some(emulator) = Emulator::start(UUID) else {
        return;
    };
    let mut foreign = session(&emulator, Trust::Pin([7; 32]), PASSWORD);
    let error = foreign.system().await.unwrap_err();
    assert!(matches!(error, RedfishError::Tls(_)), "{error}");
    let mut unknown_ca = session(&emulator, Trust::Roots(Vec::new()), PASSWORD);
    let error = unknown_ca.system().await.unwrap_err();
    assert!(matches!(error, RedfishError::Tls(_)), "{error}");
    let mut wrong = session(&emulator, Trust::Pin(emulator.pin), "wrong");
    let error = wrong.system().await.unwrap_err();
    assert!(
        matches!(error, RedfishError::Denied { status: 401, .. }),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("wrong\""));
}
