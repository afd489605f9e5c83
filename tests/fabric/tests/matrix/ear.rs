//! The packets that arrive at a machine, of any protocol.

use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, socket};

use super::hosts::inside;

/// First bytes of a mark; [`mark`] makes the rest.
const SIGN: &[u8] = b"MM:";
/// Bytes of a mark.
const LENGTH: usize = 12;

/// Marks of all packets that a namespace has sent or received.
#[derive(Clone, Default)]
pub(crate) struct Ear(Arc<Mutex<BTreeSet<String>>>);

/// The mark of a probe: 12 printable bytes, as many as fit into the pattern of `ping`.
pub(crate) fn mark(number: usize) -> String {
    format!("MM:{number:08};")
}

impl Ear {
    /// Listens on every device of a namespace, to the end of the guest.
    pub(crate) fn open(namespace: &str) -> Self {
        let ear = Self::default();
        let heard = Arc::clone(&ear.0);
        let descriptor = inside(namespace, async || {
            socket(
                AddressFamily::Packet,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC,
                SockProtocol::EthAll,
            )
            .unwrap()
        });
        std::thread::spawn(move || {
            let mut packet = vec![0; 10_000];
            while let Ok(length) = recv(descriptor.as_raw_fd(), &mut packet, MsgFlags::empty()) {
                heard.lock().unwrap().extend(marks(&packet[..length]));
            }
        });
        ear
    }

    pub(crate) fn has(&self, mark: &str) -> bool {
        self.0.lock().unwrap().contains(mark)
    }
}

fn marks(packet: &[u8]) -> impl Iterator<Item = String> {
    packet
        .windows(LENGTH)
        .filter(|window| window.starts_with(SIGN) && window.ends_with(b";"))
        .map(|window| String::from_utf8_lossy(window).into_owned())
}
