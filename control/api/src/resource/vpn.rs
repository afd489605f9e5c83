//! Keys of the VPN: how long they last, and what their maker refuses.

use std::time::Duration;

use control_gate::refusal::refused;
use control_state::ErrorCode;
use control_vpn::VpnError;
use tonic::Status;

/// Default life of a key.
pub(crate) const LIFE_DEFAULT: Duration = Duration::from_secs(2 * 3600);

pub(crate) fn failed(error: VpnError) -> Status {
    tracing::warn!(error = %error, "the VPN's control server failed");
    let message = match error {
        VpnError::Unreachable(_) => "the VPN's control server cannot be reached",
        VpnError::KeyRefused => {
            "the VPN's control server refused the API key that vpn.api_key_file names"
        }
        VpnError::Refused(_) => "the VPN's control server refused",
    };
    refused(ErrorCode::VpnFailed, message)
}
