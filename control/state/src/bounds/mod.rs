//! Bounds of commands: the one place that bounds every list and text that enters the state,
//! whoever sends it.
//!
//! A walk over the command's fields checks them, so that a new field is bounded by default: by
//! [`TEXT_MAX`] and [`LIST_MAX`], or by the entry of its name in [`TEXTS`] and [`LISTS`].

mod walk;

use proto_errors::Error;
use serde::Serialize;

/// Most labels of an object, labels of the system not counted; an update to more is refused.
pub const LABELS_MAX: usize = 64;
/// Longest text of a field without an entry in [`TEXTS`], bytes: 256 characters of four bytes. A
/// command with a longer one is refused.
pub const TEXT_MAX: usize = 1024;
/// Longest list of a field without an entry in [`LISTS`], elements. A command with a longer one is
/// refused.
pub const LIST_MAX: usize = 256;
/// Longest byte string (a certificate, a sealed key), bytes. A command with a longer one is refused.
pub const BYTES_MAX: usize = 16 * 1024;

/// Longest source of a site policy, bytes; a longer one is refused.
pub const POLICY_BYTES_MAX: usize = 64 * 1024;

/// Longest text of a JSON value in a field of free form, bytes; a longer one is refused.
pub const JSON_BYTES_MAX: usize = 16 * 1024;
/// Most values in a field of free form; a field with more is refused.
pub const JSON_FIELDS_MAX: usize = 64;

/// Bounds of texts by field name, bytes. Texts that agents read from hardware are short; texts of
/// users have the bound of the contract.
pub const TEXTS: [(&str, usize); 28] = [
    ("avatar_url", 4096),
    ("body", 16 * 1024),
    ("boot_id", 128),
    ("commandline", 4096),
    ("console_password", 256),
    ("driver_info", JSON_BYTES_MAX),
    ("error", 4096),
    ("extra", JSON_BYTES_MAX),
    ("fields", JSON_BYTES_MAX),
    ("identifier", 512),
    ("image_url", 4096),
    ("instance_info", JSON_BYTES_MAX),
    ("kernel_url", 4096),
    ("log_tail", 16 * 1024),
    ("message", 4096),
    ("model", 256),
    ("network_data", JSON_BYTES_MAX),
    ("ntp_servers", 256),
    ("port_id", 256),
    ("properties", JSON_BYTES_MAX),
    ("serial", 256),
    ("source", POLICY_BYTES_MAX),
    ("ssh_public_keys", 4 * 8192),
    ("step", 256),
    ("system_description", 256),
    ("url", 4096),
    ("userdata", 32 * 1024),
    ("vendor", 256),
];

/// Bounds of lists and maps by field name, elements.
pub const LISTS: [(&str, usize); 39] = [
    ("constraints", 32),
    ("cpus", 64),
    ("disks", 256),
    // Changes of a switch by hand.
    ("drift", 32),
    ("driver_info", JSON_FIELDS_MAX),
    ("egress_policies", 16_384),
    ("entries", 512),
    ("extra", JSON_FIELDS_MAX),
    ("fields", JSON_FIELDS_MAX),
    ("gpus", 64),
    ("groups", 16),
    // Signs of life that a leader collects of all machines and partitions.
    ("heard", 200_000),
    ("identifiers", 512),
    ("ingress_policies", 16_384),
    ("instance_info", JSON_FIELDS_MAX),
    ("interfaces", 32),
    ("labels", LABELS_MAX),
    ("load_balancers", 16_384),
    // Subjects of a token; together they are bounded where tokens are made.
    ("machine_roles", 500),
    // Every method of the contract.
    ("methods", 512),
    ("neighbours", 16),
    ("network_data", JSON_FIELDS_MAX),
    ("nics", 128),
    ("operator_rules", 16_384),
    ("permissions", 500),
    ("placement_labels", LABELS_MAX),
    ("ports", 512),
    // Objects of a switch that are not as desired.
    ("problems", 64),
    ("project_roles", 500),
    ("properties", JSON_FIELDS_MAX),
    ("readings", 100),
    // Objects that a firewall refused.
    ("refused_rules", 64),
    ("remove", LABELS_MAX),
    // BGP sessions of a switch: three address families of each port, most of them.
    ("sessions", 512),
    // Switches, and agents of a rollout, without a session.
    ("silent", 10_000),
    ("tenant_roles", 500),
    ("unobserved", 10_000),
    ("update", LABELS_MAX),
    ("vifs", 16),
];

/// Refuses a command with a list, a text or bytes beyond the bound.
///
/// # Errors
/// `InvalidField` with the field and its bound.
pub fn check(command: &impl Serialize) -> Result<(), Error> {
    command
        .serialize(&mut walk::Walk::default())
        .map_err(walk::Exceeded::into_error)
}

/// The beginning of a text, cut between characters. Messages of agents are clipped to their bound
/// instead of being refused.
pub fn clip(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max))
        .unwrap_or(text)
}

/// The bound of a text in a field, bytes.
pub fn text_max(field: &str) -> usize {
    let own = TEXTS.iter().find(|(name, _)| *name == field);
    own.map_or(TEXT_MAX, |(_, max)| *max)
}

/// The bound of a list in a field, entries.
pub fn list_max(field: &str) -> usize {
    let own = LISTS.iter().find(|(name, _)| *name == field);
    own.map_or(LIST_MAX, |(_, max)| *max)
}
