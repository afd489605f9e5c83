//! Partitions, sizes, images.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use control_gate::refusal::invalid;
use control_state::{self as state};
use proto_public::api::v2;
use proto_types::Timestamp;
use tonic::Status;

use super::enums::{
    classification, feature, from_classification, from_feature, from_size_constraint,
    size_constraint,
};
use super::{from_time, has_labels, is, is_choice, meta, new_meta, parse, required, time};

/// Default lifetime of an image, milliseconds.
const IMAGE_LIFE_MS: u64 = 90 * 24 * 3600 * 1000;

/// A partition for the wire.
pub fn partition(partition: &state::Partition) -> v2::Partition {
    v2::Partition {
        id: partition.id.to_string(),
        meta: meta(&partition.meta),
        description: partition.description.clone(),
        boot_configuration: boot(&partition.boot),
        dns_servers: dns(&partition.dns_servers),
        ntp_servers: ntp(&partition.ntp_servers),
        mgmt_service_addresses: partition.mgmt_service_addresses.clone(),
    }
}

/// A boot configuration for the wire. `None` if it is empty, because an update cannot send an empty
/// one back.
fn boot(boot: &state::BootConfiguration) -> Option<v2::PartitionBootConfiguration> {
    (*boot != state::BootConfiguration::default()).then(|| v2::PartitionBootConfiguration {
        image_url: boot.image_url.clone(),
        kernel_url: boot.kernel_url.clone(),
        commandline: boot.commandline.clone(),
    })
}

/// Name servers for the wire.
pub fn dns(servers: &[IpAddr]) -> Vec<v2::DnsServer> {
    servers
        .iter()
        .map(|ip| v2::DnsServer { ip: ip.to_string() })
        .collect()
}

/// Time servers for the wire.
pub fn ntp(servers: &[String]) -> Vec<v2::NtpServer> {
    servers
        .iter()
        .map(|address| v2::NtpServer {
            address: address.clone(),
        })
        .collect()
}

/// Name servers from the wire.
///
/// # Errors
/// `invalid_argument` for a malformed address.
pub fn from_dns(servers: &[v2::DnsServer]) -> Result<Vec<IpAddr>, Status> {
    servers
        .iter()
        .map(|server| parse("dns_servers", &server.ip))
        .collect()
}

/// Time servers from the wire.
pub fn from_ntp(servers: &[v2::NtpServer]) -> Vec<String> {
    servers
        .iter()
        .map(|server| server.address.clone())
        .collect()
}

/// A list of servers in an update. `None` leaves the list unchanged. The unspecified address alone
/// (`0.0.0.0` or `::`) means an empty list, which on the wire cannot be told from an absent one.
pub fn update_servers<T>(servers: Vec<T>, is_unspecified: impl Fn(&T) -> bool) -> Option<Vec<T>> {
    match servers.as_slice() {
        [] => None,
        [only] if is_unspecified(only) => Some(Vec::new()),
        _ => Some(servers),
    }
}

/// `true` for the unspecified address, with or without a port.
pub fn is_unspecified(server: &str) -> bool {
    let address = server.parse::<IpAddr>();
    let address = address.or_else(|_| server.parse::<SocketAddr>().map(|socket| socket.ip()));
    address.is_ok_and(|ip| ip.is_unspecified())
}

/// A boot configuration from the wire.
pub fn from_boot(boot: v2::PartitionBootConfiguration) -> state::BootConfiguration {
    state::BootConfiguration {
        image_url: boot.image_url,
        kernel_url: boot.kernel_url,
        commandline: boot.commandline,
    }
}

/// A partition from the wire.
///
/// # Errors
/// `invalid_argument`.
pub fn from_partition(partition: v2::Partition) -> Result<state::Partition, Status> {
    let dns_servers = from_dns(&partition.dns_servers)?;
    let ntp_servers = from_ntp(&partition.ntp_servers);
    let mgmt = partition.mgmt_service_addresses;
    Ok(state::Partition {
        id: parse("partition.id", &partition.id)?,
        meta: new_meta(partition.meta),
        description: partition.description,
        boot: partition
            .boot_configuration
            .map(from_boot)
            .unwrap_or_default(),
        dns_servers: update_servers(dns_servers, IpAddr::is_unspecified).unwrap_or_default(),
        ntp_servers: update_servers(ntp_servers, |server| is_unspecified(server))
            .unwrap_or_default(),
        mgmt_service_addresses: update_servers(mgmt, |server| is_unspecified(server))
            .unwrap_or_default(),
    })
}

/// A size for the wire.
pub fn size(size: &state::Size) -> v2::Size {
    v2::Size {
        id: size.id.to_string(),
        meta: meta(&size.meta),
        name: size.name.clone(),
        description: size.description.clone(),
        constraints: size.constraints.iter().map(constraint).collect(),
    }
}

fn constraint(constraint: &state::SizeConstraint) -> v2::SizeConstraint {
    v2::SizeConstraint {
        r#type: size_constraint(constraint.kind),
        min: constraint.min,
        max: constraint.max,
        identifier: constraint.identifier.clone(),
    }
}

/// Constraints of a size from the wire.
///
/// # Errors
/// `invalid_argument` for an unspecified type.
pub fn from_constraints(
    constraints: Vec<v2::SizeConstraint>,
) -> Result<Vec<state::SizeConstraint>, Status> {
    let read = |constraint: v2::SizeConstraint| {
        let kind = from_size_constraint(constraint.r#type)
            .ok_or_else(|| invalid("constraints.type", "is unspecified"))?;
        let v2::SizeConstraint {
            min,
            max,
            identifier,
            ..
        } = constraint;
        Ok(state::SizeConstraint {
            kind,
            min,
            max,
            identifier,
        })
    };
    constraints.into_iter().map(read).collect()
}

/// A size from the wire.
///
/// # Errors
/// `invalid_argument`.
pub fn from_size(size: v2::Size) -> Result<state::Size, Status> {
    Ok(state::Size {
        id: parse("size.id", &size.id)?,
        meta: new_meta(size.meta),
        name: size.name,
        description: size.description,
        constraints: from_constraints(size.constraints)?,
    })
}

/// `true` if the query matches this size.
pub fn size_matches(size: &state::Size, query: Option<&v2::SizeQuery>) -> bool {
    let Some(query) = query else { return true };
    is(query.id.as_ref(), size.id.as_str())
        && is(
            query.name.as_ref(),
            size.name.as_deref().unwrap_or_default(),
        )
        && is(
            query.description.as_ref(),
            size.description.as_deref().unwrap_or_default(),
        )
        && has_labels(&size.meta.labels, query.labels.as_ref())
}

/// An image for the wire.
pub fn image(image: &state::Image) -> v2::Image {
    v2::Image {
        id: image.id.to_string(),
        meta: meta(&image.meta),
        url: image.url.clone(),
        name: image.name.clone(),
        description: image.description.clone(),
        features: image.features.iter().map(|one| feature(*one)).collect(),
        classification: classification(image.classification),
        expires_at: time(image.expires_at),
    }
}

/// An image from the wire. Fields that published clients leave out get a default.
///
/// # Errors
/// `invalid_argument`.
pub fn from_image(image: v2::Image, now: Timestamp) -> Result<state::Image, Status> {
    let features: BTreeSet<_> = from_features(&image.features)?;
    Ok(state::Image {
        id: parse("image.id", &image.id)?,
        meta: new_meta(image.meta),
        url: required("image.url", Some(image.url).filter(|url| !url.is_empty()))?,
        name: image.name,
        description: image.description,
        features,
        classification: from_classification(image.classification)
            .unwrap_or(state::Classification::Preview),
        expires_at: image
            .expires_at
            .as_ref()
            .map_or_else(|| now.plus_ms(IMAGE_LIFE_MS), from_time),
    })
}

/// Features of an image from the wire.
///
/// # Errors
/// `invalid_argument` for an unspecified one.
pub fn from_features<C: FromIterator<state::ImageFeature>>(features: &[i32]) -> Result<C, Status> {
    features
        .iter()
        .map(|number| {
            from_feature(*number).ok_or_else(|| invalid("image.features", "has an unspecified one"))
        })
        .collect()
}

/// `true` if the query matches this image.
pub fn image_matches(image: &state::Image, query: Option<&v2::ImageQuery>) -> bool {
    let Some(query) = query else { return true };
    let (os, version) = image
        .id
        .as_str()
        .rsplit_once('-')
        .unwrap_or((image.id.as_str(), ""));
    is(query.id.as_ref(), image.id.as_str())
        && is(query.os.as_ref(), os)
        && is(query.version.as_ref(), version)
        && is(
            query.name.as_ref(),
            image.name.as_deref().unwrap_or_default(),
        )
        && is(
            query.description.as_ref(),
            image.description.as_deref().unwrap_or_default(),
        )
        && is(query.url.as_ref(), &image.url)
        && query.feature.is_none_or(|wanted| {
            let has = image.features.iter().any(|one| feature(*one) == wanted);
            wanted == 0 || has
        })
        && is_choice(query.classification, classification(image.classification))
        && has_labels(&image.meta.labels, query.labels.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_servers_is_left_emptied_or_replaced() {
        let list = |servers: &[&str]| servers.iter().map(|it| (*it).to_owned()).collect();
        let cases: [(&[&str], Option<&[&str]>); 7] = [
            (&[], None),
            (&["0.0.0.0"], Some(&[])),
            (&["::"], Some(&[])),
            (&["0.0.0.0:0"], Some(&[])),
            (&["ntp.example"], Some(&["ntp.example"])),
            (&["10.0.0.1:123"], Some(&["10.0.0.1:123"])),
            // Beside other addresses the unspecified one is not special.
            (&["0.0.0.0", "10.0.0.1"], Some(&["0.0.0.0", "10.0.0.1"])),
        ];
        for (sent, expected) in cases {
            let read = update_servers(list(sent), |it| is_unspecified(it));
            assert_eq!(read, expected.map(list), "{sent:?}");
        }
    }
}
