//! The kernel, image and command line of a partition reach its boot server.

use control_state::{AgentKind, BootConfiguration, Lock, UpdatePartition};
use proto_mesh::*;

use crate::fixture::*;

#[tokio::test(flavor = "multi_thread")]
async fn pixie_is_told_what_its_partition_boots_and_of_each_change() {
    let control = Control::start().await;
    let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    let mut boots = pixie.desired(BootDesiredRequest {}).await.unwrap();
    let first = next(&mut boots).await;
    let told = |desired: &BootDesired| {
        let urls = (desired.kernel_url.clone(), desired.image_url.clone());
        (urls.0, urls.1, desired.commandline.clone())
    };
    assert_eq!(
        told(&first),
        Default::default(),
        "a partition names nothing"
    );
    for version in ["1", "2"] {
        let text = |name: &str| format!("https://boot.example/{version}/{name}");
        let wanted = (text("kernel"), text("image"), format!("quiet v={version}"));
        let boot = BootConfiguration {
            kernel_url: wanted.0.clone(),
            image_url: wanted.1.clone(),
            commandline: wanted.2.clone(),
        };
        let update = UpdatePartition {
            id: "p1".parse().unwrap(),
            lock: Lock::Server,
            description: None,
            boot: Some(boot),
            dns_servers: None,
            ntp_servers: None,
            mgmt_service_addresses: None,
            labels: None,
        };
        control.propose(update).await.unwrap();
        let second = wait_for(&mut boots, |desired| told(desired) == wanted).await;
        assert!(second.generation > first.generation);
    }
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pixie_is_told_of_relays_and_its_word_on_a_port_is_kept() {
    let control = Control::start().await;
    control
        .propose(tests_support::announcement(1))
        .await
        .unwrap();
    let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    let mut boots = pixie.desired(BootDesiredRequest {}).await.unwrap();
    assert_eq!(next(&mut boots).await.relays, []);
    let core: SwitchServiceClient = control.agent(AgentKind::Core, "p1", "leaf1").await;
    let registration = SwitchRegisterRequest {
        management_ip: "10.90.0.11".into(),
        ..crate::reports::register()
    };
    let relay = BootRelay {
        switch: "leaf1".into(),
        address: registration.management_ip.clone(),
    };
    core.register(registration).await.unwrap();
    wait_for(&mut boots, |desired| desired.relays == [relay.clone()]).await;
    let uuid = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";
    for (switch, port, kept) in [
        ("leaf1", "swp1", Some("swp1")),
        ("leaf1", "swp2", Some("swp2")),
        ("leaf9", "swp1", Some("swp2")),
        ("", "", None),
    ] {
        let seen = BootSeenRequest {
            relay_switch: switch.into(),
            relay_port: port.into(),
            ..seen_at_boot(uuid, "52:54:00:00:00:01")
        };
        pixie.seen(seen).await.unwrap();
        let found = control.machine(uuid.parse().unwrap());
        let mut ports = found.boot_ports.values().map(|at| at.port.as_str());
        assert_eq!(ports.next(), kept, "{switch} {port}");
    }
    control.stop().await;
}
