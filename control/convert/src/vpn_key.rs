//! Keys of members of the VPN, sealed in the state.

use control_pki::Pki;
use control_state::VpnMember;
use proto_types::AllocationId;

/// The name under which the key of an allocation is sealed.
pub fn seal_name(of: AllocationId) -> String {
    format!("vpn/{of}")
}

/// The key of a member, for its own machine only. Empty once the node of the member was seen, or if the
/// key cannot be unsealed, which is logged.
pub fn vpn_key(pki: &Pki, member: &VpnMember) -> String {
    let access = &member.access;
    if access.sealed_key.is_empty() {
        return String::new();
    }
    let name = seal_name(member.allocation);
    let opened = pki.unseal(&name, &access.sealed_key);
    let opened = opened.map_err(|error| {
        let allocation = member.allocation;
        tracing::error!(%allocation, error = %error, "a key of the VPN does not open");
    });
    let key = opened.ok().and_then(|key| String::from_utf8(key).ok());
    key.unwrap_or_default()
}
