//! Configuration of the back-end.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::address::Address;
use crate::frr::Vtysh;

/// Configuration of the back-end.
#[derive(Clone, Debug)]
pub struct Config {
    /// Names of the front-panel ports: exact, or a prefix and `*` ("Ethernet*").
    pub ports: Vec<String>,
    /// The address of redis.
    pub redis: Address,
    /// Time that redis may take for one round of commands.
    pub answer: Duration,
    /// Time that SONiC may take to follow one write.
    pub confirm: Duration,
    /// VLANs that the agent gives to segments and L3 VNIs, and nobody else uses.
    pub vlans: RangeInclusive<u16>,
    /// The directory in which the kernel describes its interfaces. `None` means that the agent
    /// cannot see them: then ports are private in the ASIC alone.
    pub kernel: Option<PathBuf>,
    /// The way to the FRR of SONiC, which makes the switch a leaf with BGP and EVPN. `None` means
    /// that somebody else configures it.
    pub frr: Option<Vtysh>,
}

impl Default for Config {
    /// SONiC's own socket; 2 s for redis, 3 s for a write; VLANs 1001 to 3000; no FRR.
    fn default() -> Self {
        Self {
            ports: vec!["Ethernet*".to_owned()],
            redis: Address::Unix("/var/run/redis/redis.sock".into()),
            answer: Duration::from_secs(2),
            confirm: Duration::from_secs(3),
            vlans: 1001..=3000,
            kernel: Some("/sys/class/net".into()),
            frr: None,
        }
    }
}

impl Config {
    pub(super) fn is_port(&self, name: &str) -> bool {
        let mut patterns = self.ports.iter();
        patterns.any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        })
    }
}
