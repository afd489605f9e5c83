//! The message to the service manager that the agent is ready (sd_notify(3)).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Environment variable with the address of the service manager's socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Tells the service manager that the agent is ready. Nothing happens without one.
///
/// # Errors
/// Its socket does not take the message.
pub(crate) fn notify_ready() -> io::Result<()> {
    match std::env::var_os(SOCKET) {
        Some(address) => send(&address),
        None => Ok(()),
    }
}

fn send(address: &OsStr) -> io::Result<()> {
    // `@` stands for the zero byte of an abstract address.
    let address = match address.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(b"READY=1", &address).map(drop)
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
            send(&address).unwrap();
            let mut message = [0; 32];
            let length = manager.recv(&mut message).unwrap();
            assert_eq!(&message[..length], b"READY=1");
        }
        assert!(send(OsStr::new("/nonexistent/notify")).is_err());
    }
}
