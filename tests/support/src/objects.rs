//! Objects and commands of the state that tests begin with, with valid contents.
//!
//! All of them are of one small data centre: partition [`PARTITION`] with leaf `leaf1`, whose port
//! `swpN` goes to machine N. A test that needs another field sets it with `..`.

#![expect(clippy::unwrap_used, reason = "every text below is valid")]

use std::net::IpAddr;

use control_state::*;
use proto_types::*;
use uuid::Uuid;

/// The partition.
pub const PARTITION: &str = "lab";
/// The size that [`hardware`] has.
pub const SIZE: &str = "small";
/// The image of machines.
pub const IMAGE: &str = "debian-12.0.20260101";
/// Bytes of a GiB.
pub const GIB: u64 = 1 << 30;

/// The id with this number.
#[must_use]
pub fn id<T: From<Uuid>>(number: u128) -> T {
    T::from(Uuid::from_u128(number))
}

/// The value that a text stands for.
///
/// # Panics
/// The text is not valid.
#[must_use]
pub fn text<T: std::str::FromStr<Err = ParseError>>(text: &str) -> T {
    text.parse().unwrap()
}

/// The SHA-256 digest that consists of this byte.
#[must_use]
pub fn sha(byte: u8) -> Digest {
    Digest::sha256([byte; 32])
}

/// A tenant, and its owner's login.
#[must_use]
pub fn tenant(login: &str, owner: Option<&str>) -> CreateTenant {
    CreateTenant {
        login: text(login),
        name: login.into(),
        email: String::new(),
        description: String::new(),
        avatar_url: String::new(),
        labels: Labels::new(),
        owner: owner.map(text),
    }
}

/// A project of a tenant, named after its number.
#[must_use]
pub fn project(number: u128, tenant: &str) -> CreateProject {
    CreateProject {
        id: id(number),
        tenant: text(tenant),
        name: format!("project-{number}"),
        description: String::new(),
        avatar_url: None,
        labels: Labels::new(),
        owner: None,
    }
}

/// The size [`SIZE`]: up to 4 cores, 4 GiB of memory and 100 GiB of disks.
#[must_use]
pub fn size() -> Size {
    Size {
        id: text(SIZE),
        meta: Meta::default(),
        name: None,
        description: None,
        constraints: [
            (SizeConstraintType::Cores, 1, 4),
            (SizeConstraintType::Memory, 0, 4 * GIB),
            (SizeConstraintType::Storage, 0, 100 * GIB),
        ]
        .map(|(kind, min, max)| SizeConstraint {
            kind,
            min,
            max,
            identifier: None,
        })
        .to_vec(),
    }
}

/// A partition with a name server and a time server.
#[must_use]
pub fn partition(name: &str) -> Partition {
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

/// An image for machines, with a digest.
#[must_use]
pub fn image(name: &str) -> Image {
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
#[must_use]
pub fn network(name: &str) -> CreateNetwork {
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
#[must_use]
pub fn child(name: &str, project: u128) -> CreateChildNetwork {
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

/// The address of the one card of machine `number`.
#[must_use]
pub fn mac(number: u128) -> MacAddr {
    MacAddr([0x52, 0x54, 0, 0, 0, u8::try_from(number).unwrap()])
}

/// Machine `number`: 2 cores, 1 GiB, a disk, a CD drive, and a card at port `swp<number>` of `leaf1`.
#[must_use]
pub fn hardware(number: u128) -> Hardware {
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

/// What hammer registers of machine `number`.
#[must_use]
pub fn registration(number: u128, boot_id: &str) -> RegisterMachine {
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

/// The report of a disk that was wiped, or of why it was not.
#[must_use]
pub fn wiped(name: &str, error: Option<&str>) -> DiskWipe {
    DiskWipe {
        name: name.into(),
        error: error.map(str::to_owned),
        ..DiskWipe::default()
    }
}

/// Project 1 wants a small machine in its private network.
#[must_use]
pub fn allocation_of(allocation: u128) -> AllocateMachine {
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
#[must_use]
pub fn leaf(name: &str, rack: &str) -> RegisterSwitch {
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
