//! The section `[mesh]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use serde::Deserialize;

use super::address::check_address;

/// The section `[mesh]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MeshSection {
    pub(super) listen: Option<SocketAddr>,
    pub(super) addresses: Vec<String>,
    pub(super) trust_domain: Option<String>,
    pub(super) sealing_key: Option<PathBuf>,
}

/// Checks the addresses that tickets name. Agents on other machines must be able to dial them.
pub(super) fn check_addresses(addresses: &[String], listen: SocketAddr) -> Result<()> {
    if addresses.is_empty() && listen.ip().is_unspecified() {
        bail!(
            "mesh.addresses: is missing; mesh.listen is {listen}, which no agent can dial. Name \
             what they reach, for example addresses = [\"control.example:{}\"]",
            listen.port()
        );
    }
    addresses
        .iter()
        .try_for_each(|address| check_address("mesh.addresses", address))
}

/// Checks that the trust domain is a valid part of a SPIFFE id.
pub(super) fn check_trust_domain(domain: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    ensure!(
        !domain.is_empty() && domain.len() <= 255 && domain.chars().all(plain),
        "mesh.trust_domain: {domain:?} must be lower-case letters, digits, '-' and '.', for \
         example \"metalmesh.example\""
    );
    Ok(())
}
