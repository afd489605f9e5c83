//! Forwarding of packets, which the agent opens once its rules are in the kernel.

use std::path::Path;
use std::time::Instant;
use std::{fs, io};

use tracing::{info, warn};

use crate::compile::fragments::bounded;
use crate::fragment_room::FragmentRoom;
use crate::readiness::notify_ready;
use crate::rule::RuleSet;

/// The kernel's switches, one for each family. They are those of the agent's network namespace.
const SWITCHES: [&str; 2] = [
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/net/ipv6/conf/all/forwarding",
];

/// Forwarding, as far as the agent has opened it. It never closes it again: its rules stay in the
/// kernel when it ends.
#[derive(Debug, Default)]
pub(crate) struct ForwardingGate {
    is_open: bool,
    /// `true` if a failure was logged. Opening is tried again at each look at the kernel.
    is_failing: bool,
    room: FragmentRoom,
}

impl ForwardingGate {
    /// Opens forwarding, and tells the service manager that the rules are in force; makes room for the
    /// fragments of their networks. Call it often, once the kernel has them.
    pub(crate) fn open(&mut self, rules: &RuleSet) {
        let networks = bounded(rules).count();
        if self.is_open {
            self.room.keep(networks, Instant::now());
            return;
        }
        match SWITCHES
            .iter()
            .try_for_each(|path| switch_on(Path::new(path)))
        {
            Ok(()) => {
                self.is_open = true;
                self.room.keep(networks, Instant::now());
                info!("the rules are in force; packets are forwarded");
                if let Err(error) = notify_ready() {
                    warn!(%error, "cannot tell the service manager that the rules are in force");
                }
            }
            Err(error) if !self.is_failing => {
                self.is_failing = true;
                warn!(%error, "forwarding cannot be opened; trying again");
            }
            Err(_) => {}
        }
    }
}

/// Writes a switch only if it is off: the write has side effects, such as on redirects.
fn switch_on(path: &Path) -> io::Result<()> {
    match fs::read_to_string(path) {
        Ok(text) if text.trim() == "1" => Ok(()),
        Ok(_) => fs::write(path, "1"),
        // A kernel without IPv6 forwards none.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_written_only_if_it_is_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switch");
        switch_on(&path).unwrap();
        assert!(!path.exists(), "a family that the kernel has not");
        fs::write(&path, "0\n").unwrap();
        switch_on(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1");
        fs::write(&path, "1\n").unwrap();
        switch_on(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
        assert!(switch_on(folder.path()).is_err());
    }
}
