//! Partitions, sizes, images, layouts, networks and addresses.

use anyhow::Result;
use serde_json::{Value, json};

use crate::scenario::{Scenario, digest, id, relabelled};

pub(crate) const PARTITION: &str = "lab";
pub(crate) const SIZE: &str = "small";
pub(crate) const IMAGE: &str = "debian-12.0.20260101";
const GIB: u64 = 1 << 30;

fn meta(labels: Value) -> Value {
    json!({"labels": labels, "created_at": 0, "updated_at": 0, "generation": 0})
}

fn partition(name: &str) -> Value {
    json!({"CreatePartition": {
        "id": name,
        "meta": meta(json!({"metalmesh.dev/unknown-machines-per-minute": "100000"})),
        "description": "text", "dns_servers": ["1.1.1.1"], "ntp_servers": ["ntp.example"],
        "mgmt_service_addresses": ["10.0.0.1:50051"],
        "boot": {
            "image_url": "http://a.example/i", "kernel_url": "http://a.example/k",
            "commandline": "quiet",
        },
    }})
}

fn constraints(memory_gib: u64) -> Value {
    json!([
        {"kind": "cores", "min": 1, "max": 4, "identifier": "*"},
        {"kind": "memory", "min": 0, "max": memory_gib * GIB},
        {"kind": "storage", "min": 0, "max": 100 * GIB, "identifier": "*"},
    ])
}

fn image(name: &str) -> Value {
    json!({"CreateImage": {
        "id": name, "meta": meta(json!({"metalmesh.dev/digest": digest(7)})),
        "url": "http://images.example/i.tar.zst", "name": "image", "description": "text",
        "features": ["machine", "firewall"], "classification": "supported", "expires_at": 1_u64 << 50,
    }})
}

fn layout_parts() -> Value {
    json!({
        "name": "layout", "description": "text",
        "filesystems": [{
            "device": "/dev/vda1", "format": "ext4", "name": "root", "description": "text",
            "path": "/", "label": "root", "mount_options": ["noatime"], "create_options": ["-F"],
        }],
        "disks": [{"device": "/dev/vda", "partitions": [
            {"number": 1, "label": "root", "size_mib": 0, "gpt_type": "8300"},
        ]}],
        "raids": [], "volume_groups": [], "logical_volumes": [],
        "constraints": {"sizes": ["huge"], "images": {"debian": ">= 12.0"}},
    })
}

/// `head` with the fields of `rest` beside its own.
fn joined(mut head: Value, rest: Value) -> Value {
    if let (Some(head), Value::Object(rest)) = (head.as_object_mut(), rest) {
        head.extend(rest);
    }
    head
}

pub(crate) fn rows(scenario: &mut Scenario<'_>) -> Result<()> {
    scenario.row(partition(PARTITION))?;
    scenario.row(json!({"UpdatePartition": {
        "id": PARTITION, "lock": "server", "description": "text",
        "boot": {"image_url": "http://a.example/i", "kernel_url": "http://a.example/k",
            "commandline": "quiet"},
        "dns_servers": ["1.1.1.1"], "ntp_servers": ["ntp.example"],
        "mgmt_service_addresses": ["10.0.0.1:50051"],
        "labels": {"patch": {"update": {"key": "value"}, "remove": ["nothing"]}},
    }}))?;
    scenario.done(partition("spare"))?;
    scenario.row(json!({"DeletePartition": "spare"}))?;
    sizes(scenario)?;
    images(scenario)?;
    networks(scenario)
}

fn sizes(scenario: &mut Scenario<'_>) -> Result<()> {
    let size = |name: &str, memory_gib: u64| {
        json!({"CreateSize": {
            "id": name, "meta": meta(json!({"key": "value"})), "name": "size",
            "description": "text", "constraints": constraints(memory_gib),
        }})
    };
    scenario.row(size(SIZE, 4))?;
    scenario.row(json!({"UpdateSize": {
        "id": SIZE, "lock": "server", "name": "size", "description": "text",
        "constraints": constraints(4), "labels": relabelled(),
    }}))?;
    let mut huge = size("huge", 4);
    huge["CreateSize"]["constraints"][0]["min"] = json!(5);
    huge["CreateSize"]["constraints"][0]["max"] = json!(64);
    scenario.done(huge)?;
    scenario.row(json!({"SetQuota": {
        "subject": {"project": id(1)},
        "limits": {"machines": 10, "machines_of_size": {SIZE: 10}, "networks": 10, "ips": 10},
    }}))?;
    scenario.row(json!({"RemoveQuota": {"subject": {"project": id(1)}}}))?;
    scenario.row(json!({"CreateSizeReservation": {
        "id": id(1), "meta": meta(json!({"key": "value"})), "name": "reserved",
        "description": "text", "project": id(2), "size": "huge", "partitions": [PARTITION],
        "amount": 1,
    }}))?;
    scenario.row(json!({"UpdateSizeReservation": {
        "id": id(1), "lock": "server", "name": "reserved", "description": "text",
        "partitions": [PARTITION], "amount": 2, "labels": relabelled(),
    }}))?;
    scenario.row(json!({"DeleteSizeReservation": id(1)}))?;
    let allowed = json!([{"image": "debian", "semver_match": ">= 12.0"}]);
    scenario.row(json!({"CreateSizeImageConstraint": {
        "size": "huge", "meta": meta(json!({})), "name": "allowed", "description": "text",
        "image_constraints": allowed,
    }}))?;
    scenario.row(json!({"UpdateSizeImageConstraint": {
        "size": "huge", "lock": "server", "name": "allowed", "description": "text",
        "image_constraints": allowed,
    }}))?;
    scenario.row(json!({"DeleteSizeImageConstraint": "huge"}))
}

fn images(scenario: &mut Scenario<'_>) -> Result<()> {
    scenario.row(image(IMAGE))?;
    scenario.row(json!({"UpdateImage": {
        "id": IMAGE, "lock": "server", "url": "http://images.example/i.tar.zst", "name": "image",
        "description": "text", "features": ["machine", "firewall"],
        "classification": "supported", "expires_at": 1_u64 << 50,
        "labels": {"patch": {"update": {"key": "value"}, "remove": ["nothing"]}},
    }}))?;
    scenario.done(image("debian-11.0.20250101"))?;
    scenario.row(json!({"DeleteImage": "debian-11.0.20250101"}))?;
    let layout = json!({"id": "plain", "meta": meta(json!({}))});
    scenario.row(json!({"CreateLayout": joined(layout, layout_parts())}))?;
    let update = json!({"id": "plain", "lock": "server"});
    scenario.row(json!({"UpdateLayout": joined(update, layout_parts())}))?;
    scenario.row(json!({"DeleteLayout": "plain"}))?;
    scenario.row(json!({"DeleteSize": "huge"}))
}

fn networks(scenario: &mut Scenario<'_>) -> Result<()> {
    scenario.row(json!({"CreateNetwork": {
        "id": "super", "kind": "super", "name": "super", "description": "text",
        "partition": PARTITION, "labels": {"key": "value"}, "prefixes": ["10.128.0.0/16"],
        "destination_prefixes": [], "default_child_length": {"v4": 22},
        "additional_announcable_cidrs": ["10.240.0.0/12"],
    }}))?;
    scenario.done(json!({"CreateNetwork": {
        "id": "internet", "kind": "external", "partition": PARTITION, "vrf": 100,
        "prefixes": ["192.0.2.0/24"],
    }}))?;
    scenario.done(json!({"CreateNetwork": {
        "id": "underlay", "kind": "underlay", "partition": PARTITION,
        "prefixes": ["10.1.0.0/24"],
    }}))?;
    let child = |name: &str| {
        json!({"CreateChildNetwork": {
            "id": name, "project": id(1), "name": "child", "description": "text",
            "labels": {"key": "value"}, "partition": PARTITION,
        }})
    };
    scenario.row(child("private"))?;
    scenario.row(json!({"UpdateNetwork": {
        "id": "internet", "lock": "server", "name": "internet", "description": "text",
        "labels": relabelled(), "prefixes": ["192.0.2.0/24"],
        "destination_prefixes": ["0.0.0.0/0"],
    }}))?;
    scenario.done(child("spare"))?;
    scenario.row(json!({"DeleteNetwork": {"id": "spare", "project": id(1)}}))?;
    scenario.row(json!({"CreateIp": {
        "id": id(1), "network": "internet", "project": id(1), "name": "ip",
        "description": "text", "labels": {"key": "value"}, "kind": "static", "ip": "192.0.2.9",
    }}))?;
    let key = json!({"namespace": null, "ip": "192.0.2.9"});
    scenario.row(json!({"UpdateIp": {
        "key": key, "lock": "server", "project": id(1), "name": "ip", "description": "text",
        "kind": "static", "labels": relabelled(),
    }}))?;
    scenario.row(json!({"DeleteIp": {"key": key, "project": id(1)}}))
}
