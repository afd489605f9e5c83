//! Commands that only the tests of the state begin with.

use control_state::*;

use super::*;

/// A world whose control nodes know every rule.
pub(crate) fn upgraded() -> World {
    let mut world = World::new();
    world.ok(tests_support::announcement(1));
    world
}

/// A static address out of a network.
pub(crate) fn ip(number: u128, network: &str, project: u128) -> CreateIp {
    CreateIp {
        id: id(number),
        network: text(network),
        project: id(project),
        name: String::new(),
        description: String::new(),
        labels: Labels::new(),
        kind: IpType::Static,
        ip: None,
        family: None,
        machine: None,
        underlay: false,
    }
}

/// The report of an installation that worked.
pub(crate) fn installed(number: u128, allocation: u128) -> InstallDone {
    InstallDone {
        id: id(number),
        allocation: id(allocation),
        error: None,
        step: String::new(),
        retryable: false,
        log_tail: String::new(),
        console_password: "secret".into(),
        primary_disk: "/dev/vda".into(),
    }
}

/// Other labels of the partition, and nothing else.
pub(crate) fn relabel(labels: LabelsUpdate) -> UpdatePartition {
    UpdatePartition {
        id: text(PARTITION),
        lock: Lock::Server,
        description: None,
        boot: None,
        dns_servers: None,
        ntp_servers: None,
        mgmt_service_addresses: None,
        labels: Some(labels),
    }
}

/// Another network of the systems installed from the image. Empty removes the label.
pub(crate) fn network_of_image(mode: &str) -> UpdateImage {
    let mode = (!mode.is_empty()).then(|| (label::NETWORKING.to_owned(), mode.to_owned()));
    let digest = (label::DIGEST.to_owned(), sha(7).to_string());
    UpdateImage {
        id: text(IMAGE),
        lock: Lock::Server,
        url: None,
        name: None,
        description: None,
        features: None,
        classification: None,
        expires_at: None,
        labels: Some(LabelsUpdate::Replace(
            mode.into_iter().chain([digest]).collect(),
        )),
    }
}
