//! Reads `neighbor` lines.

use crate::frr::model::{
    BgpInstance, Description, InterfaceName, Neighbour, ObjectName, PeerFamily, PeerSettings,
    Remote, RemoteAs, Timers,
};

/// Times that FRR means by `allowas-in` without a number.
const ALLOWAS_IN_DEFAULT: u8 = 3;

impl BgpInstance {
    /// Settings of a peer of ours that was read before. `None` for others: neighbours by address,
    /// groups with other names.
    pub(super) fn peer(&mut self, name: &str) -> Option<&mut PeerSettings> {
        if let Ok(group) = ObjectName::new(name) {
            return self.groups.get_mut(&group).map(|group| &mut group.settings);
        }
        let interface = InterfaceName::new(name).ok()?;
        let neighbour = self.neighbours.get_mut(&interface)?;
        Some(&mut neighbour.settings)
    }

    /// Reads the words after a peer's name, outside of address families. `None` if they are not
    /// ours.
    pub(super) fn read_peer(&mut self, name: &str, words: &[&str]) -> Option<()> {
        match words {
            ["peer-group"] => {
                self.groups.entry(ObjectName::new(name).ok()?).or_default();
            }
            ["interface", "v6only", rest @ ..] | ["interface", rest @ ..] => {
                self.open_neighbour(name, rest)?;
            }
            ["remote-as", remote] => {
                let group = self.groups.get_mut(&ObjectName::new(name).ok()?)?;
                group.remote_as = Some(RemoteAs::parse(remote)?);
            }
            _ => return self.peer(name)?.read(words),
        }
        Some(())
    }

    fn open_neighbour(&mut self, name: &str, words: &[&str]) -> Option<()> {
        let remote = match words {
            ["peer-group", group] => Remote::Group(ObjectName::new(group).ok()?),
            ["remote-as", remote] => Remote::As(RemoteAs::parse(remote)?),
            _ => return None,
        };
        let mut settings = PeerSettings::default();
        // Without this option FRR shows only who does not exchange IPv4 routes.
        settings.families.ipv4.activate = self.ipv4_by_default;
        let name = InterfaceName::new(name).ok()?;
        let neighbour = Neighbour { remote, settings };
        self.neighbours.insert(name, neighbour);
        Some(())
    }
}

impl PeerSettings {
    fn read(&mut self, words: &[&str]) -> Option<()> {
        match words {
            ["description", text @ ..] => {
                self.description = Some(Description::new(&text.join(" ")).ok()?);
            }
            ["timers", keepalive, hold] => {
                let timers = Timers::new(keepalive.parse().ok()?, hold.parse().ok()?);
                self.timers = Some(timers?);
            }
            ["shutdown"] => self.shutdown = true,
            ["bfd"] => self.bfd = true,
            _ => return None,
        }
        Some(())
    }
}

impl PeerFamily {
    /// Reads the words after a peer's name within an address family. `None` if they are not ours.
    pub(super) fn read(&mut self, words: &[&str]) -> Option<()> {
        match words {
            ["activate"] => self.activate = true,
            ["allowas-in"] => self.allowas_in = Some(ALLOWAS_IN_DEFAULT),
            ["allowas-in", times] => self.allowas_in = Some(times.parse().ok()?),
            ["maximum-prefix", most] => self.maximum_prefix = Some(most.parse().ok()?),
            ["route-map", map, "in"] => self.route_map_in = Some(ObjectName::new(map).ok()?),
            ["route-map", map, "out"] => self.route_map_out = Some(ObjectName::new(map).ok()?),
            _ => return None,
        }
        Some(())
    }
}
