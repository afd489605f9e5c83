//! The ports that relays say of cards.

use std::collections::BTreeMap;

use proto_types::MacAddr;

use crate::relay::RelayedPort;

/// Cards whose port is remembered at most. The one that was heard first is forgotten.
const PORTS_MAX: usize = 16_384;

/// The port of each card, as relays said it last.
#[derive(Debug, Clone, Default)]
pub struct RelayedPorts {
    ports: BTreeMap<MacAddr, (u64, RelayedPort)>,
    heard: BTreeMap<u64, MacAddr>,
    next: u64,
}

impl RelayedPorts {
    /// Notes the port of a card.
    pub fn note(&mut self, mac: MacAddr, port: RelayedPort) {
        if let Some((number, _)) = self.ports.remove(&mac) {
            self.heard.remove(&number);
        }
        if self.ports.len() >= PORTS_MAX
            && let Some((_, oldest)) = self.heard.pop_first()
        {
            self.ports.remove(&oldest);
        }
        self.heard.insert(self.next, mac);
        self.ports.insert(mac, (self.next, port));
        self.next += 1;
    }

    /// The port of a card. `None` if no relay has said it.
    #[must_use]
    pub fn of(&self, mac: MacAddr) -> Option<&RelayedPort> {
        self.ports.get(&mac).map(|(_, port)| port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::tests::MAC;

    #[test]
    fn the_last_word_on_a_card_counts_and_the_memory_is_bounded() {
        let mut ports = RelayedPorts::default();
        let at = |port: &str| RelayedPort {
            switch: "leaf1".into(),
            port: port.into(),
        };
        ports.note(MAC, at("swp1"));
        ports.note(MAC, at("swp2"));
        assert_eq!(ports.of(MAC), Some(&at("swp2")));
        for number in 0..PORTS_MAX {
            let [.., high, low] = u32::try_from(number).unwrap().to_be_bytes();
            ports.note(MacAddr([2, 0, 0, 9, high, low]), at("swp3"));
        }
        assert_eq!(ports.of(MAC), None);
        assert_eq!(
            (ports.ports.len(), ports.heard.len()),
            (PORTS_MAX, PORTS_MAX)
        );
    }
}
