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
