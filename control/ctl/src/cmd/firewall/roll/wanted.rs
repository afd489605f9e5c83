//! The request for a replacement: a firewall like the other one.

use anyhow::{Context as _, Result};
use proto_public::api::v2::{
    FirewallSpec, Labels, Machine, MachineAllocation, MachineAllocationNetwork,
    MachineAllocationType, MachineServiceCreateRequest, NetworkType,
};

use super::RollArgs;

/// Label of a replacement with the id of the allocation that it replaces: a roll that was interrupted
/// right after the allocation finds it by that.
pub(super) const REPLACES_LABEL: &str = "metalmesh.dev/replaces";
/// Host name of systems that were given none.
const HOSTNAME_DEFAULT: &str = "metal";
/// Longest name and host name, characters. A longer one is cut in front of its number.
const NAME_LEN_MAX: usize = 63;

/// The request for a firewall in place of this machine.
///
/// # Errors
/// The machine is not allocated as a firewall, or is in no partition.
pub(super) fn wanted(old: &Machine, args: &RollArgs) -> Result<MachineServiceCreateRequest> {
    let allocation = firewall(old)?;
    let partition = old
        .partition
        .as_ref()
        .context("the firewall is in no partition")?;
    let size = old.size.as_ref().map(|size| size.id.clone());
    let image = allocation.image.as_ref().map(|image| image.id.clone());
    let layout = allocation.filesystem_layout.as_ref();
    let networks = allocation.networks.iter();
    // Control adds the underlay by itself.
    let networks = networks.filter(|network| network.network_type() != NetworkType::Underlay);
    Ok(MachineServiceCreateRequest {
        project: allocation.project.clone(),
        uuid: None,
        name: next_name(&allocation.name),
        description: Some(allocation.description.clone()),
        hostname: Some(&allocation.hostname)
            .filter(|name| *name != HOSTNAME_DEFAULT)
            .map(|name| next_hostname(name)),
        partition: Some(partition.id.clone()),
        size: args.size.clone().or(size),
        image: args
            .image
            .clone()
            .or(image)
            .context("the firewall has no image; name one with --image")?,
        filesystem_layout: args
            .filesystem_layout
            .clone()
            .or_else(|| layout.map(|layout| layout.id.clone())),
        ssh_public_keys: Vec::new(),
        userdata: None,
        labels: Some(labels(allocation)),
        networks: networks
            .map(|network| MachineAllocationNetwork {
                network: network.network.clone(),
                ips: Vec::new(),
            })
            .collect(),
        placement_labels: allocation.placement_labels.clone(),
        dns_servers: allocation.dns_servers.clone(),
        ntp_servers: allocation.ntp_servers.clone(),
        allocation_type: MachineAllocationType::Firewall.into(),
        firewall_spec: Some(FirewallSpec {
            firewall_rules: allocation.firewall_rules.clone(),
        }),
    })
}

/// The allocation of a firewall.
///
/// # Errors
/// The machine is allocated as none.
pub(super) fn firewall(machine: &Machine) -> Result<&MachineAllocation> {
    let allocation = machine.allocation.as_ref();
    let firewall = allocation
        .filter(|allocation| allocation.allocation_type() == MachineAllocationType::Firewall);
    firewall.with_context(|| format!("machine {} is no firewall", machine.uuid))
}

/// `true` if a machine was allocated in place of an allocation.
pub(super) fn is_replacement_of(machine: &Machine, allocation: &str) -> bool {
    let own = machine.allocation.as_ref();
    let meta = own.and_then(|own| own.meta.as_ref());
    let labels = meta.and_then(|meta| meta.labels.as_ref());
    let label = labels.and_then(|labels| labels.labels.get(REPLACES_LABEL));
    label.is_some_and(|label| label == allocation)
}

/// The labels of an allocation, with the mark of its replacement.
fn labels(allocation: &MachineAllocation) -> Labels {
    let own = allocation
        .meta
        .as_ref()
        .and_then(|meta| meta.labels.clone());
    let mut labels = own.unwrap_or_default();
    labels
        .labels
        .insert(REPLACES_LABEL.to_owned(), allocation.uuid.clone());
    labels
}

/// The host name after one: only its first part counts.
fn next_hostname(hostname: &str) -> String {
    match hostname.split_once('.') {
        Some((first, domain)) => format!("{}.{domain}", next_name(first)),
        None => next_name(hostname),
    }
}

/// The name after one: `fw-2` after `fw`, `fw-3` after `fw-2`. Two firewalls of one name could not be
/// told apart.
fn next_name(name: &str) -> String {
    let numbered = name.rsplit_once('-').and_then(|(stem, number)| {
        let number = number.parse::<u32>().ok()?;
        Some((stem, number.checked_add(1)?))
    });
    let (stem, number) = numbered.unwrap_or((name, 2));
    let end = format!("-{number}");
    let room = NAME_LEN_MAX.saturating_sub(end.len());
    let stem: String = stem.chars().take(room).collect();
    format!("{stem}{end}")
}

#[cfg(test)]
mod tests {
    use proto_public::api::v2::{FilesystemLayout, Image, MachineNetwork, Meta, Partition, Size};

    use super::*;

    fn network(id: &str, kind: NetworkType) -> MachineNetwork {
        MachineNetwork {
            network: id.into(),
            network_type: kind.into(),
            ips: vec!["10.0.0.1".into()],
            ..MachineNetwork::default()
        }
    }

    fn machine() -> Machine {
        let labels = Labels {
            labels: [("team".to_owned(), "edge".to_owned())].into(),
        };
        Machine {
            uuid: "m1".into(),
            partition: Some(Partition {
                id: "p1".into(),
                ..Partition::default()
            }),
            size: Some(Size {
                id: "small".into(),
                ..Size::default()
            }),
            allocation: Some(MachineAllocation {
                uuid: "a1".into(),
                name: "fw".into(),
                hostname: "fw-host-9".into(),
                project: "project".into(),
                image: Some(Image {
                    id: "firewall-3.0.1".into(),
                    ..Image::default()
                }),
                filesystem_layout: Some(FilesystemLayout {
                    id: "default".into(),
                    ..FilesystemLayout::default()
                }),
                networks: vec![
                    network("private", NetworkType::Child),
                    network("internet", NetworkType::External),
                    network("underlay", NetworkType::Underlay),
                ],
                meta: Some(Meta {
                    labels: Some(labels),
                    ..Meta::default()
                }),
                allocation_type: MachineAllocationType::Firewall.into(),
                ..MachineAllocation::default()
            }),
            ..Machine::default()
        }
    }

    #[test]
    fn a_replacement_is_like_the_firewall() {
        let request = wanted(&machine(), &RollArgs::default()).unwrap();
        assert_eq!(
            (request.name.as_str(), request.hostname.as_deref()),
            ("fw-2", Some("fw-host-10"))
        );
        assert_eq!(
            (request.image.as_str(), request.size.as_deref()),
            ("firewall-3.0.1", Some("small"))
        );
        assert_eq!(request.filesystem_layout.as_deref(), Some("default"));
        // The addresses of the other one stay with it, and control adds the underlay.
        let names: Vec<&str> = request
            .networks
            .iter()
            .map(|network| &*network.network)
            .collect();
        assert_eq!(names, ["private", "internet"]);
        assert!(
            request
                .networks
                .iter()
                .all(|network| network.ips.is_empty())
        );
        let labels = request.labels.unwrap().labels;
        assert_eq!(labels["team"], "edge");
        assert_eq!(labels[REPLACES_LABEL], "a1");
        let args = RollArgs {
            image: Some("firewall-3.1".into()),
            size: Some("large".into()),
            ..RollArgs::default()
        };
        let request = wanted(&machine(), &args).unwrap();
        assert_eq!(
            (request.image.as_str(), request.size.as_deref()),
            ("firewall-3.1", Some("large"))
        );
        let mut server = machine();
        if let Some(allocation) = &mut server.allocation {
            allocation.allocation_type = MachineAllocationType::Machine.into();
        }
        let error = wanted(&server, &args).unwrap_err().to_string();
        assert!(error.contains("is no firewall"), "{error}");
    }

    #[test]
    fn a_replacement_is_found_by_its_label() {
        let mut new = machine();
        assert!(!is_replacement_of(&new, "a1"));
        let request = wanted(&new, &RollArgs::default()).unwrap();
        if let Some(meta) = new.allocation.as_mut().and_then(|own| own.meta.as_mut()) {
            meta.labels = request.labels;
        }
        assert!(is_replacement_of(&new, "a1"));
        assert!(!is_replacement_of(&new, "a2"));
    }

    #[test]
    fn names_are_counted() {
        let (long, cut) = ("x".repeat(80), format!("{}-2", "x".repeat(61)));
        for (name, wanted) in [
            ("fw", "fw-2"),
            ("fw-2", "fw-3"),
            ("edge-fw", "edge-fw-2"),
            ("fw-9", "fw-10"),
            ("fw-4294967295", "fw-4294967295-2"),
            (long.as_str(), cut.as_str()),
        ] {
            assert_eq!(next_name(name), wanted);
        }
        assert_eq!(next_hostname("fw-2.example.com"), "fw-3.example.com");
    }
}
