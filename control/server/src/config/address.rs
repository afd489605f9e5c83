//! Addresses as `HOST:PORT`.

use anyhow::{Result, ensure};

/// Checks that the address is `HOST:PORT` with a port other than 0. An error names `field`.
pub(super) fn check_address(field: &str, address: &str) -> Result<()> {
    let port = address
        .rsplit_once(':')
        .filter(|(host, _)| !host.is_empty());
    let port = port
        .and_then(|(_, port)| port.parse::<u16>().ok())
        .filter(|port| *port > 0);
    ensure!(
        port.is_some(),
        "{field}: {address:?} is not HOST:PORT; for example \"control.example:4443\""
    );
    Ok(())
}
