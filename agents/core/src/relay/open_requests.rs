//! Requests that the boot server may answer.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use proto_types::MacAddr;

/// Requests kept for each port, the newest. Firmware has one or two at a time.
const OF_PORT_MAX: usize = 8;
/// Ports with requests at most; those of further ones get no answers. No switch has as many.
const PORTS_MAX: usize = 1024;

/// The last requests of each port. An answer to none of them is not the boot server's: its address
/// proves nothing, because whoever reaches the switch can send in its name.
#[derive(Debug, Default)]
pub(super) struct OpenRequests(Mutex<BTreeMap<String, VecDeque<(u32, MacAddr)>>>);

impl OpenRequests {
    /// Notes the transaction and the client of a request.
    pub(super) fn note(&self, port: &str, xid: u32, client: MacAddr) {
        let mut ports = self.0.lock();
        if ports.len() >= PORTS_MAX && !ports.contains_key(port) {
            return;
        }
        let open = ports.entry(port.to_owned()).or_default();
        if open.contains(&(xid, client)) {
            return;
        }
        if open.len() >= OF_PORT_MAX {
            open.pop_front();
        }
        open.push_back((xid, client));
    }

    /// `true` if the port has such a request.
    pub(super) fn has(&self, port: &str, xid: u32, client: MacAddr) -> bool {
        let ports = self.0.lock();
        ports
            .get(port)
            .is_some_and(|open| open.contains(&(xid, client)))
    }
}
