//! Rows of the operator's objects: partitions, sizes, images, layouts, networks, addresses.

use proto_public::api::v2::{
    FilesystemLayout, Image, ImageUsage, Ip, Network, NetworkUsage, Partition, Size,
    SizeConstraint, SizeImageConstraint, SizeReservation,
};

use crate::output::TableRow;
use crate::text::{age, bytes, enum_text, meta_age, or_dash, show_labels};

use super::{maybe, row};

/// Label of partitions whose machines must present a nonce that their BMC holds.
pub(crate) const REQUIRE_BMC_NONCE: &str = "metalmesh.dev/require-bmc-nonce";
/// Label of a partition with the number of confirmed cables that its machines need.
pub(crate) const UPLINKS: &str = "metalmesh.dev/uplinks";

row!(SizeReservation, "metalstack.api.v2.SizeReservation", |r| [
    "id": r.id.clone(), "name": r.name.clone(), "project": r.project.clone(),
    "size": r.size.clone(), "partitions": r.partitions.join(","), "amount": r.amount.to_string(),
], wide [
    "description": r.description.clone(), "age": meta_age(r.meta.as_ref()),
    "labels": show_labels(r.meta.as_ref()),
]);

row!(SizeImageConstraint, "metalstack.api.v2.SizeImageConstraint", |c| [
    "size": c.size.clone(), "name": maybe(c.name.as_ref()),
    "allows": c.image_constraints.iter()
        .map(|constraint| format!("{} {}", constraint.image, constraint.semver_match))
        .collect::<Vec<_>>().join("; "),
], wide [
    "description": maybe(c.description.as_ref()), "age": meta_age(c.meta.as_ref()),
]);

row!(Partition, "metalstack.api.v2.Partition", |p| [
    "id": p.id.clone(), "age": meta_age(p.meta.as_ref()), "bmc nonce": bmc_nonce(p),
    "uplinks": uplinks(p),
    "description": p.description.clone(),
], wide [
    "dns": p.dns_servers.iter().map(|d| d.ip.clone()).collect::<Vec<_>>().join(","),
    "ntp": p.ntp_servers.iter().map(|n| n.address.clone()).collect::<Vec<_>>().join(","),
    "labels": show_labels(p.meta.as_ref()),
]);

row!(Size, "metalstack.api.v2.Size", |s| [
    "id": s.id.clone(), "name": maybe(s.name.as_ref()), "constraints": size_constraints(s),
    "age": meta_age(s.meta.as_ref()),
], wide [
    "description": maybe(s.description.as_ref()), "labels": show_labels(s.meta.as_ref()),
]);

fn size_constraints(size: &Size) -> String {
    let one = |c: &SizeConstraint| {
        let kind = enum_text("metalstack.api.v2.SizeConstraintType", c.r#type);
        let (min, max) = match kind.as_str() {
            "memory" | "storage" => (bytes(c.min), bytes(c.max)),
            _ => (c.min.to_string(), c.max.to_string()),
        };
        let only = c
            .identifier
            .as_ref()
            .map(|id| format!(" of {id}"))
            .unwrap_or_default();
        format!("{kind} {min} to {max}{only}")
    };
    size.constraints
        .iter()
        .map(one)
        .collect::<Vec<_>>()
        .join(", ")
}

row!(Image, "metalstack.api.v2.Image", |i| [
    "id": i.id.clone(), "name": maybe(i.name.as_ref()),
    "class": enum_text("metalstack.api.v2.ImageClassification", i.classification),
    "for": i.features.iter().map(|f| enum_text("metalstack.api.v2.ImageFeature", *f))
        .collect::<Vec<_>>().join(","),
    "expires": age(i.expires_at.as_ref()),
], wide [
    "url": i.url.clone(), "description": maybe(i.description.as_ref()),
    "labels": show_labels(i.meta.as_ref()),
]);

row!(FilesystemLayout, "metalstack.api.v2.FilesystemLayout", |f| [
    "id": f.id.clone(), "name": maybe(f.name.as_ref()),
    "filesystems": f.filesystems.iter().map(|one| {
        let format = enum_text("metalstack.api.v2.Format", one.format);
        format!("{} {format}", one.path.as_deref().unwrap_or("-"))
    }).collect::<Vec<_>>().join(", "),
    "sizes": f.constraints.as_ref().map(|c| c.sizes.join(",")).unwrap_or_default(),
], wide [
    "disks": f.disks.iter()
        .map(|d| format!("{} ({} partitions)", d.device, d.partitions.len()))
        .collect::<Vec<_>>().join(", "),
    "images": f.constraints.as_ref().map(|c| {
        let mut images: Vec<_> = c.images.iter().map(|(os, v)| format!("{os} {v}")).collect();
        images.sort();
        images.join(", ")
    }).unwrap_or_default(),
]);

row!(Network, "metalstack.api.v2.Network", |n| [
    "id": n.id.clone(), "name": maybe(n.name.as_ref()),
    "type": enum_text("metalstack.api.v2.NetworkType", n.r#type),
    "partition": maybe(n.partition.as_ref()), "project": maybe(n.project.as_ref()),
    "prefixes": n.prefixes.join(","), "ips": network_usage(n),
], wide [
    "destinations": n.destination_prefixes.join(","),
    "nat": enum_text("metalstack.api.v2.NATType", n.nat_type),
    "vrf": n.vrf.map(|vrf| vrf.to_string()).unwrap_or_default(),
    "parent": maybe(n.parent_network.as_ref()), "age": meta_age(n.meta.as_ref()),
    "labels": show_labels(n.meta.as_ref()),
]);

/// Used and available addresses of each family.
fn network_usage(network: &Network) -> String {
    let Some(consumption) = &network.consumption else {
        return "-".into();
    };
    let used = |usage: &NetworkUsage, family: &str| {
        format!("{}/{} {family}", usage.used_ips, usage.available_ips)
    };
    let v4 = consumption.ipv4.as_ref().map(|usage| used(usage, "v4"));
    let v6 = consumption.ipv6.as_ref().map(|usage| used(usage, "v6"));
    or_dash(v4.into_iter().chain(v6).collect::<Vec<_>>().join(" "))
}

row!(Ip, "metalstack.api.v2.IP", |i| [
    "ip": i.ip.clone(), "name": or_dash(i.name.clone()), "network": i.network.clone(),
    "project": i.project.clone(), "type": enum_text("metalstack.api.v2.IPType", i.r#type),
    "age": meta_age(i.meta.as_ref()),
], wide [
    "id": i.uuid.clone(), "description": i.description.clone(),
    "labels": show_labels(i.meta.as_ref()),
]);

row!(ImageUsage, "metalstack.api.v2.ImageUsage", |u| [
    "image": u.image.as_ref().map_or_else(String::new, |image| image.id.clone()),
    "machines": u.used_by.len().to_string(),
], wide ["used by": or_dash(u.used_by.join(","))]);

/// `required` if machines of the partition must present a nonce that their BMC holds.
pub(crate) fn bmc_nonce(partition: &Partition) -> &'static str {
    let labels = partition
        .meta
        .as_ref()
        .and_then(|meta| meta.labels.as_ref());
    match labels.and_then(|labels| labels.labels.get(REQUIRE_BMC_NONCE)) {
        Some(text) if text == "true" => "required",
        _ => "-",
    }
}

/// The number of confirmed cables that a machine of the partition needs; `-` if the partition has
/// no such label.
pub(crate) fn uplinks(partition: &Partition) -> &str {
    let labels = partition
        .meta
        .as_ref()
        .and_then(|meta| meta.labels.as_ref());
    let text = labels.and_then(|labels| labels.labels.get(UPLINKS));
    text.map_or("-", String::as_str)
}
