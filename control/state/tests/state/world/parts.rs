//! What a world is made of: commands and objects with sane contents.

use std::net::IpAddr;

use control_state::*;
use proto_types::*;

use super::*;

pub(crate) fn partition(name: &str) -> Partition {
    Partition {
        id: text(name),
        meta: Meta::default(),
        description: String::new(),
        boot: BootConfiguration::default(),
        dns_servers: vec!["1.1.1.1".parse::<IpAddr>().unwrap()],
        ntp_servers: vec!["ntp.example".into()],
        mgmt_service_addresses: vec![],
    }
}

pub(crate) fn image(name: &str) -> Image {
    let digest = (label::DIGEST.to_owned(), sha(7).to_string());
    Image {
        id: text(name),
        meta: Meta::labelled([digest].into()),
        url: format!("http://images.example/{name}.tar.zst"),
        name: None,
        description: None,
        features: [ImageFeature::Machine].into(),
        classification: Classification::Supported,
        expires_at: Timestamp::ZERO,
    }
}

/// A super network of the partition.
pub(crate) fn network(name: &str) -> CreateNetwork {
    CreateNetwork {
        id: text(name),
        kind: NetworkType::Super,
        name: None,
        description: None,
        partition: Some(text(PARTITION)),
        project: None,
        labels: Labels::new(),
        prefixes: vec!["10.128.0.0/16".parse().unwrap()],
        destination_prefixes: vec![],
        default_child_length: ChildLength {
            v4: Some(22),
            v6: None,
        },
        min_child_length: ChildLength::default(),
        nat: None,
        vrf: None,
        parent: None,
        additional_announcable_cidrs: vec![],
        length: ChildLength::default(),
        family: None,
    }
}

/// A child of the partition's super network.
pub(crate) fn child(name: &str, project: u128) -> CreateChildNetwork {
    CreateChildNetwork {
        id: text(name),
        project: id(project),
        name: None,
        description: None,
        labels: Labels::new(),
        partition: Some(text(PARTITION)),
        parent: None,
        length: ChildLength::default(),
        family: None,
    }
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

pub(crate) fn mac(number: u128) -> MacAddr {
    MacAddr([0x52, 0x54, 0, 0, 0, u8::try_from(number).unwrap()])
}

pub(crate) fn hardware(number: u128) -> Hardware {
    Hardware {
        memory: GIB,
        cpus: vec![Cpu {
            cores: 2,
            threads: 2,
            ..Cpu::default()
        }],
        gpus: vec![],
        disks: vec![
            BlockDevice {
                name: "/dev/vda".into(),
                size: 10 * GIB,
                serial: format!("disk-{number}"),
                ..BlockDevice::default()
            },
            BlockDevice {
                name: "/dev/sr0".into(),
                size: GIB,
                removable: true,
                ..BlockDevice::default()
            },
        ],
        nics: vec![Nic {
            name: "eth0".into(),
            mac: mac(number),
            identifier: String::new(),
            vendor: String::new(),
            model: String::new(),
            speed: 1000,
            neighbours: vec![Neighbour {
                chassis_id: "leaf1".into(),
                port_id: format!("swp{number}"),
                system_name: "leaf1".into(),
                ..Neighbour::default()
            }],
            boot: true,
        }],
        firmware: Firmware::Bios,
    }
}

pub(crate) fn registration(number: u128, boot_id: &str) -> RegisterMachine {
    RegisterMachine {
        id: id(number),
        seen_in: None,
        hammer_version: "1".into(),
        boot_id: boot_id.into(),
        hardware: hardware(number),
        bios: Bios::default(),
        fru: Fru::default(),
        bmc_address: String::new(),
        bmc_mac: String::new(),
        bmc_version: String::new(),
    }
}

pub(crate) fn wiped(name: &str, error: Option<&str>) -> DiskWipe {
    DiskWipe {
        name: name.into(),
        error: error.map(str::to_owned),
        ..DiskWipe::default()
    }
}

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

/// Project 1 wants a small machine in its private network.
pub(crate) fn allocation_of(allocation: u128) -> AllocateMachine {
    AllocateMachine {
        id: id(allocation),
        project: id(1),
        machine: None,
        name: format!("machine-{allocation}"),
        description: String::new(),
        hostname: None,
        partition: Some(text(PARTITION)),
        size: Some(text(SIZE)),
        image: text("debian-12.0"),
        layout: Some(text(LAYOUT_DEFAULT)),
        ssh_public_keys: vec!["ssh-ed25519 AAAA me".into()],
        userdata: String::new(),
        labels: Labels::new(),
        networks: vec![WantedNetwork {
            network: text("private"),
            ips: vec![],
        }],
        placement_labels: Labels::new(),
        dns_servers: vec![],
        ntp_servers: vec![],
        kind: AllocationType::Machine,
        firewall_rules: FirewallRules::default(),
        vpn: None,
        seed: 0,
        idempotency: None,
    }
}

/// A leaf with eight ports.
pub(crate) fn leaf(name: &str, rack: &str) -> RegisterSwitch {
    RegisterSwitch {
        id: text(name),
        partition: text(PARTITION),
        rack: rack.into(),
        room: "room".into(),
        management_ip: None,
        vtep_ip: Some("10.0.0.1".parse().unwrap()),
        ports: (1..=8).map(|n| (format!("swp{n}"), None)).collect(),
        identifiers: Default::default(),
        os_vendor: "linux".into(),
        os_version: String::new(),
        agent_version: String::new(),
        hears: true,
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
