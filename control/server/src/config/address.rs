//! Addresses as `HOST:PORT`.

use anyhow::{Result, ensure};
use proto_types::is_host_and_port;

/// Checks that the address is `HOST:PORT`, the host being a name or an IP address, with a port other
/// than 0. An error names `field`.
pub(super) fn check_address(field: &str, address: &str) -> Result<()> {
    ensure!(
        is_host_and_port(address),
        "{field}: {address:?} is not HOST:PORT; for example \"control.example:4443\""
    );
    Ok(())
}
