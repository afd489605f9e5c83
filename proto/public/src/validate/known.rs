//! The named rules of the contract and what they check. Ids are those of protovalidate and of
//! `predefined_rules.proto`, whose expressions a test compares with the ones ported here.

use super::formats as f;
use super::rule::{Format, Rule};
use super::uri::is_uri;

macro_rules! formats {
    ($($name:literal => $id:literal $(or $empty:literal)?, $message:literal, $check:expr;)*) => {
        &[$((
            $name,
            Format {
                id: $id,
                empty: formats!(@empty $($empty)?),
                message: $message,
                check: $check,
            },
        )),*]
    };
    (@empty) => { None };
    (@empty $id:literal) => { Some($id) };
}

/// Rules of a text by their name in `StringRules` or in its extensions.
const TEXTS: &[(&str, Format)] = formats! {
    "uuid" => "string.uuid" or "string.uuid_empty", "must be a UUID", f::is_uuid;
    "email" => "string.email" or "string.email_empty", "must be an e-mail address", f::is_email;
    "ip" => "string.ip" or "string.ip_empty", "must be an IP address", f::is_ip;
    "hostname" => "string.hostname" or "string.hostname_empty",
        "must be a host name", f::is_hostname;
    "ip_prefix" => "string.ip_prefix" or "string.ip_prefix_empty",
        "must be a network prefix without host bits", f::is_network;
    "host_and_port" => "string.host_and_port" or "string.host_and_port_empty",
        "must be host:port", f::is_host_and_port;
    "macaddress" => "string.macaddress", "must be a MAC address, pairs and colons", f::is_mac;
    "is_name" => "string.is_name", "must have 2 to 128 characters", |t| within(t, 2, 128);
    "is_description" => "string.is_description",
        "must have at most 256 characters", |t| within(t, 0, 256);
    "is_partition" => "string.is_partition",
        "must have 2 to 128 characters", |t| within(t, 2, 128);
    "is_prefix" => "string.prefixes", "must be a network prefix", f::is_prefix;
    "is_uri" => "string.uri", "must be an absolute URI", is_uri;
    "is_ip_or_hostname" => "valid_address",
        "must be an IP address or a host name", f::is_ip_or_hostname;
    "trimmed" => "string.trimmed", "must not start or end with white space", f::is_trimmed;
    "is_user" => "string.is_user", "must have 2 to 512 characters", |t| within(t, 2, 512);
    "is_option" => "string.is_option", "must have 1 to 128 characters", |t| within(t, 1, 128);
    "is_key" => "string.is_key", "must have 1 to 8192 characters", |t| within(t, 1, 8192);
    "is_tenant_login" => "string.is_tenant_login",
        "must have 2 to 128 characters", |t| within(t, 2, 128);
    "is_tenant_subject_permission" => "string.is_tenant_subject_permission",
        "must be * or have 2 to 128 characters", |t| t == "*" || within(t, 2, 128);
    "is_project_subject_permission" => "string.is_project_subject_permission",
        "must be * or a UUID", f::is_star_or_uuid;
    "is_machine_subject_permission" => "string.is_machine_subject_permission",
        "must be * or a UUID", f::is_star_or_uuid;
    "is_base64" => "string.is_base64", "must be base64", f::is_base64;
};

/// Rules of all elements of a list.
const LISTS: &[(&str, Format)] = formats! {
    "prefixes" => "repeated.prefixes", "must be network prefixes", f::is_prefix;
    "ips" => "repeated.ips", "must be IP addresses", f::is_ip;
    "are_host_and_port" => "repeated.are_host_and_port",
        "must be host or host:port each", f::is_host_maybe_port;
    "all_trimmed" => "repeated.all_trimmed",
        "must not start or end with white space", f::is_trimmed;
};

/// Rules of all keys of a map. Two of them say less than their names: the expression of
/// `keys_and_values_trimmed` looks at keys twice, and that of `tenant_roles_keys_valid` is always
/// true. Both are ported as they are, so that clients see the same verdicts.
const MAPS: &[(&str, Format)] = formats! {
    "keys_and_values_trimmed" => "map.keys_and_values_trimmed",
        "keys must not start or end with white space", f::is_trimmed;
    "keys_trimmed" => "map.keys_trimmed",
        "keys must not start or end with white space", f::is_trimmed;
    "project_roles_keys_valid" => "project_roles.key.valid",
        "keys must be * or a UUID", f::is_star_or_uuid;
    "tenant_roles_keys_valid" => "tenant_roles.key.valid",
        "keys must be * or have 2 to 128 characters", |_| true;
    "machine_roles_keys_valid" => "machine_roles.key.valid",
        "keys must be * or a UUID", f::is_star_or_uuid;
};

/// Patterns by their text; there is one, which is no reason for a regex engine.
const PATTERNS: &[(&str, Format)] = formats! {
    "^[a-z_ -]*$" => "string.pattern", "may have a-z, _, - and spaces only",
        |t| t.bytes().all(|b| b.is_ascii_lowercase() || b"_ -".contains(&b));
};

/// Ids of ranges, by kind and bounds.
const RANGES: &[&str] = &[
    "int32.gt",
    "int32.gte",
    "int32.gt_lte",
    "uint32.lte",
    "uint32.gt_lte",
    "duration.gte_lt",
    "duration.gte_lte",
];

fn within(text: &str, min: u64, max: u64) -> bool {
    (min..=max).contains(&f::length(text))
}

fn find(all: &[(&str, Format)], name: &str) -> Option<Format> {
    all.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, format)| *format)
}

/// A rule of `StringRules`.
pub(super) fn text(name: &str) -> Option<Format> {
    find(TEXTS, name)
}

/// A pattern of `StringRules`.
pub(super) fn pattern(pattern: &str) -> Option<Format> {
    find(PATTERNS, pattern)
}

/// A predefined rule of `RepeatedRules` or `MapRules`.
pub(super) fn container(name: &str) -> Option<Rule> {
    let list = find(LISTS, name).map(Rule::EachText);
    list.or_else(|| find(MAPS, name).map(Rule::EachKey))
}

/// The id of a range.
pub(super) fn range(kind: &str, bounds: &[&str]) -> Option<&'static str> {
    let wanted = format!("{kind}.{}", bounds.join("_"));
    RANGES.iter().find(|id| **id == wanted).copied()
}
