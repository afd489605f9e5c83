//! The order to install, as hammer reads it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_state::life::InstallOrder;
use control_state::{
    AllocationNetwork, AllocationType, Disk as StateDisk, Filesystem as StateFilesystem,
    Layout as StateLayout, NatType,
};
use proto_mesh::{
    Disk, Filesystem, Image, Install, Layout, LogicalVolume, MachineNetwork, Partition, Raid,
    UserdataContent, VolumeGroup,
};

pub(crate) fn message(order: &InstallOrder, control: &[String]) -> Install {
    Install {
        allocation_uuid: order.allocation.to_string(),
        project: order.project.to_string(),
        hostname: order.hostname.clone(),
        image: Some(Image {
            id: order.image.id.to_string(),
            url: order.image.url.clone(),
            digest: order.image.digest.to_string(),
        }),
        layout: Some(layout(&order.layout)),
        ssh_public_keys: order.ssh_public_keys.clone(),
        userdata: userdata(&order.userdata),
        networks: order.networks.iter().map(network).collect(),
        dns_servers: order.dns_servers.iter().map(ToString::to_string).collect(),
        ntp_servers: order.ntp_servers.clone(),
        control: control.to_vec(),
        attempt: order.attempt,
        networking: order.networking.as_str().to_owned(),
        mtu: order.mtu,
        uplinks: order.uplinks.iter().map(ToString::to_string).collect(),
        bond: order.bond.as_str().to_owned(),
        host_addresses: order.has_host_addresses,
        firewall: order.kind == AllocationType::Firewall,
        userdata_contents: userdata_contents(order),
    }
}

fn userdata_contents(order: &InstallOrder) -> Vec<UserdataContent> {
    let contents = order.userdata_contents.iter();
    let contents = contents.map(|made| UserdataContent {
        path: made.path.to_owned(),
        content: made.content.clone().into_bytes(),
    });
    contents.collect()
}

/// Users give base64; what does not decode goes as it is.
fn userdata(text: &str) -> Vec<u8> {
    STANDARD
        .decode(text.trim())
        .unwrap_or_else(|_| text.as_bytes().to_vec())
}

fn network(network: &AllocationNetwork) -> MachineNetwork {
    let texts = |list: &[_]| list.iter().map(ToString::to_string).collect();
    MachineNetwork {
        network: network.network.to_string(),
        r#type: network.kind.as_str().to_owned(),
        prefixes: texts(&network.prefixes),
        destination_prefixes: texts(&network.destination_prefixes),
        ips: network.ips.iter().map(ToString::to_string).collect(),
        vni: network.vrf,
        asn: network.asn.0,
        nat: network.nat != NatType::None,
    }
}

fn layout(layout: &StateLayout) -> Layout {
    Layout {
        id: layout.id.to_string(),
        disks: layout.disks.iter().map(disk).collect(),
        raids: layout
            .raids
            .iter()
            .map(|raid| Raid {
                array_name: raid.array_name.clone(),
                devices: raid.devices.clone(),
                level: raid.level,
                create_options: raid.create_options.clone(),
                spares: raid.spares,
            })
            .collect(),
        volume_groups: layout
            .volume_groups
            .iter()
            .map(|group| VolumeGroup {
                name: group.name.clone(),
                devices: group.devices.clone(),
                tags: group.tags.clone(),
            })
            .collect(),
        logical_volumes: layout
            .logical_volumes
            .iter()
            .map(|volume| LogicalVolume {
                name: volume.name.clone(),
                volume_group: volume.volume_group.clone(),
                size_mib: volume.size_mib,
                r#type: volume.lvm_type.as_str().to_owned(),
            })
            .collect(),
        filesystems: layout.filesystems.iter().map(filesystem).collect(),
    }
}

fn disk(disk: &StateDisk) -> Disk {
    let partition = |p: &control_state::DiskPartition| Partition {
        number: p.number,
        label: p.label.clone().unwrap_or_default(),
        size_mib: p.size_mib,
        gpt_type: p.gpt_type.map_or("8300", |t| t.as_str()).to_owned(),
    };
    Disk {
        device: disk.device.clone(),
        partitions: disk.partitions.iter().map(partition).collect(),
    }
}

fn filesystem(filesystem: &StateFilesystem) -> Filesystem {
    Filesystem {
        device: filesystem.device.clone(),
        path: filesystem.path.clone().unwrap_or_default(),
        format: filesystem.format.as_str().to_owned(),
        label: filesystem.label.clone().unwrap_or_default(),
        mount_options: filesystem.mount_options.clone(),
        create_options: filesystem.create_options.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn userdata_is_decoded_when_it_is_base64() {
        assert_eq!(userdata("I2Nsb3VkLWNvbmZpZwo="), b"#cloud-config\n");
        assert_eq!(userdata("#cloud-config\n"), b"#cloud-config\n");
        assert_eq!(userdata(""), b"");
    }
}
