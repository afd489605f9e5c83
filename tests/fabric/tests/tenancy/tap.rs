//! The packets that arrive at a machine, by the tenant whose machine sent them.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, socket};

use super::hosts::inside;

/// First bytes of a mark.
const SIGN: &[u8] = b"MM:";
/// Bytes of a mark: sign, tenant, sender, end.
const LENGTH: usize = 7;

/// Packets with a mark that came to a namespace, by the tenant of their sender.
#[derive(Clone, Default)]
pub(crate) struct Tap(Arc<Mutex<BTreeMap<char, u64>>>);

/// The mark of the packets of a machine, while it belongs to a tenant.
pub(crate) fn mark(tenant: char, sender: u8) -> String {
    format!("MM:{tenant}{sender:02};")
}

impl Tap {
    /// Listens on every device of a namespace, to the end of the guest. Own packets do not count.
    pub(crate) fn open(namespace: &str, number: u8) -> Self {
        let tap = Self::default();
        let heard = Arc::clone(&tap.0);
        let descriptor = inside(namespace, async || {
            socket(
                AddressFamily::Packet,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC,
                SockProtocol::EthAll,
            )
            .unwrap()
        });
        let own = format!("{number:02}").into_bytes();
        std::thread::spawn(move || {
            let mut packet = vec![0; 10_000];
            while let Ok(length) = recv(descriptor.as_raw_fd(), &mut packet, MsgFlags::empty()) {
                if let Some(tenant) = sender(&packet[..length], &own) {
                    *heard.lock().unwrap().entry(tenant).or_default() += 1;
                }
            }
        });
        tap
    }

    /// `true` if a packet of a tenant's machine has come since the last look.
    pub(crate) fn has(&self, tenant: char) -> bool {
        self.0.lock().unwrap().contains_key(&tenant)
    }

    /// The packets since the last look, by tenant.
    pub(crate) fn take(&self) -> BTreeMap<char, u64> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// The tenant of a packet's mark.
fn sender(packet: &[u8], own: &[u8]) -> Option<char> {
    let mut windows = packet.windows(LENGTH);
    let mark = windows.find(|window| window.starts_with(SIGN) && window.ends_with(b";"))?;
    (&mark[4..6] != own).then(|| char::from(mark[3]))
}
