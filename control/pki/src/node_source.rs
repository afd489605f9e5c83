//! The source of a join by an invitation that is bound to no key.
//!
//! The secret of such an invitation is on a line that people copy. Whoever reads the line on its way can
//! use it only from the address that the invitation names, so the request must come from there.

use std::net::IpAddr;
use std::time::Duration;

use control_state::{ErrorCode, StateError};

use crate::PkiError;

/// Longest wait for the address of a name. Beyond it the join is refused, and may be repeated.
const LOOKUP_MAX: Duration = Duration::from_secs(5);

/// Checks that a request comes from the host of `address`, host:port.
///
/// # Errors
/// The host has no address, or the request came from another one.
pub(crate) async fn check(address: &str, remote: IpAddr) -> Result<(), PkiError> {
    let found = tokio::time::timeout(LOOKUP_MAX, tokio::net::lookup_host(address)).await;
    let found = found
        .map_err(|_| "no name server answered in time".to_owned())
        .and_then(|found| found.map_err(|error| error.to_string()))
        .map(|found| found.map(|one| one.ip()).collect::<Vec<_>>());
    judge(address, found, remote).map_err(PkiError::Refused)
}

/// Judges the addresses of the invited host against the source of the request.
fn judge(
    address: &str,
    found: Result<Vec<IpAddr>, String>,
    remote: IpAddr,
) -> Result<(), StateError> {
    let refuse =
        |what: String, hint: &str| Err(StateError::new(ErrorCode::TicketForeign, what).hint(hint));
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            let what =
                format!("the invitation is for {address:?}, whose host is unknown here: {error}");
            let hint = "make the name known to the control nodes, or invite the node by its IP address: \
                 `metalmesh cluster invite IP:PORT`";
            return refuse(what, hint);
        }
    };
    // A listener for both families sees an IPv4 address as a part of IPv6.
    let remote = remote.to_canonical();
    if found.iter().any(|own| own.to_canonical() == remote) {
        return Ok(());
    }
    let what = format!("the invitation is for {address:?}, but the request came from {remote}");
    let hint = "use it on the host that it names; a host whose calls arrive from another address \
         joins by its key: `metalmesh cluster invite --key-sha256 HEX`";
    refuse(what, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_key_is_used_from_its_address_only() {
        for (found, remote, refused) in [
            (Ok(vec!["192.0.2.2"]), "192.0.2.2", ""),
            (Ok(vec!["192.0.2.2"]), "::ffff:192.0.2.2", ""),
            (Ok(vec!["2001:db8::2", "192.0.2.2"]), "192.0.2.2", ""),
            (Ok(vec!["192.0.2.2"]), "192.0.2.66", "came from 192.0.2.66"),
            (Ok(vec![]), "192.0.2.2", "came from 192.0.2.2"),
            (
                Err("no such host"),
                "192.0.2.2",
                "unknown here: no such host",
            ),
        ] {
            let found = found
                .map(|found| found.iter().map(|one| one.parse().unwrap()).collect())
                .map_err(str::to_owned);
            let answer = judge("control-2:4444", found, remote.parse().unwrap());
            let message = answer.err().map_or_else(String::new, |error| error.message);
            assert_eq!(message.is_empty(), refused.is_empty(), "{message}");
            assert!(message.contains(refused), "{message}");
        }
    }
}
