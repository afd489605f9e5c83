//! Messages to the service manager (sd_notify(3)): the agent is ready, and it is alive.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use tracing::warn;

/// Environment variable with the address of the service manager's socket.
const SOCKET: &str = "NOTIFY_SOCKET";
/// Pause between two messages that the agent is alive: a small part of `WatchdogSec` of its unit.
const ALIVE_PERIOD: Duration = Duration::from_secs(10);

/// Tells the service manager that the agent is ready. Nothing happens without one.
///
/// # Errors
/// Its socket does not take the message.
pub(crate) fn notify_ready() -> io::Result<()> {
    match std::env::var_os(SOCKET) {
        Some(address) => send(&address, b"READY=1"),
        None => Ok(()),
    }
}

/// Tells the service manager that the agent is alive. It starts one anew that hangs, which for a new
/// program counts as a start without success.
#[derive(Debug, Default)]
pub(crate) struct AliveNotices {
    /// Time of the last message. `None` before the first.
    last: Option<Instant>,
    /// `true` if a failure was logged.
    is_failing: bool,
}

impl AliveNotices {
    /// Sends a message if one is due. Call it often.
    pub(crate) fn tick(&mut self) {
        if self.last.is_some_and(|last| last.elapsed() < ALIVE_PERIOD) {
            return;
        }
        self.last = Some(Instant::now());
        let Some(address) = std::env::var_os(SOCKET) else {
            return;
        };
        let sent = send(&address, b"WATCHDOG=1");
        if let Err(error) = &sent
            && !self.is_failing
        {
            warn!(%error, "cannot tell the service manager that the agent is alive");
        }
        self.is_failing = sent.is_err();
    }
}

fn send(address: &OsStr, message: &[u8]) -> io::Result<()> {
    // `@` stands for the zero byte of an abstract address.
    let address = match address.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(message, &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_manager_hears_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let name = format!("metalmesh-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let abstract_manager = UnixDatagram::bind_addr(&address).unwrap();
        for (manager, address) in [
            (manager, path.into_os_string()),
            (abstract_manager, format!("@{name}").into()),
        ] {
            send(&address, b"READY=1").unwrap();
            let mut message = [0; 32];
            let length = manager.recv(&mut message).unwrap();
            assert_eq!(&message[..length], b"READY=1");
        }
        assert!(send(OsStr::new("/nonexistent/notify"), b"READY=1").is_err());
    }
}
