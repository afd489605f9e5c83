//! Bounds on what one command may hold: the one place where every list and text that gets into the
//! state is bounded, whoever sends it.
//!
//! A walk over the command's own fields finds them, so that a new field is bounded before anybody
//! thinks of it: by [`TEXT_MAX`] and [`LIST_MAX`], or by its name in [`TEXTS`] and [`LISTS`].

mod walk;

use proto_errors::Error;
use serde::Serialize;

/// Labels of an object, those of the system not counted.
pub const LABELS_MAX: usize = 64;
/// Longest text, bytes, of a field that has no bound of its own: 256 characters of four bytes.
pub const TEXT_MAX: usize = 1024;
/// Longest list of a field that has no bound of its own.
pub const LIST_MAX: usize = 256;
/// Longest run of bytes: a certificate, a sealed key.
pub const BYTES_MAX: usize = 16 * 1024;

/// Longest source of a site policy, bytes; a longer one is refused.
pub const POLICY_BYTES_MAX: usize = 64 * 1024;

/// Texts that have a bound of their own, bytes. What agents read out of hardware is short; what
/// users write has the contract's bound.
pub const TEXTS: [(&str, usize); 22] = [
    ("avatar_url", 4096),
    ("body", 16 * 1024),
    ("boot_id", 128),
    ("commandline", 4096),
    ("console_password", 256),
    ("error", 4096),
    ("identifier", 512),
    ("image_url", 4096),
    ("kernel_url", 4096),
    ("log_tail", 16 * 1024),
    ("message", 4096),
    ("model", 256),
    ("ntp_servers", 256),
    ("port_id", 256),
    ("serial", 256),
    ("source", POLICY_BYTES_MAX),
    ("ssh_public_keys", 4 * 8192),
    ("step", 256),
    ("system_description", 256),
    ("url", 4096),
    ("userdata", 32 * 1024),
    ("vendor", 256),
];

/// Lists and maps that have a bound of their own.
pub const LISTS: [(&str, usize); 21] = [
    ("constraints", 32),
    ("cpus", 64),
    ("disks", 256),
    ("entries", 512),
    ("gpus", 64),
    // A leader's own notes of all machines and partitions.
    ("heard", 200_000),
    ("identifiers", 512),
    ("labels", LABELS_MAX),
    // Subjects of a token; together they are bounded where tokens are made.
    ("machine_roles", 500),
    // Every method of the contract.
    ("methods", 512),
    ("neighbours", 16),
    ("nics", 128),
    ("permissions", 500),
    ("placement_labels", LABELS_MAX),
    ("ports", 512),
    ("project_roles", 500),
    ("readings", 100),
    ("remove", LABELS_MAX),
    ("tenant_roles", 500),
    ("unobserved", 10_000),
    ("update", LABELS_MAX),
];

/// Refuses a command that holds more than it may.
///
/// # Errors
/// `InvalidField` with the field and its bound.
pub fn check(command: &impl Serialize) -> Result<(), Error> {
    command
        .serialize(&mut walk::Walk::default())
        .map_err(walk::Exceeded::into_error)
}

/// The beginning of a text that people read, cut where a character begins: agents' messages are
/// kept up to their bound rather than refused.
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
