//! Follows a packet through a table, as the kernel does.

mod packet;

use std::collections::BTreeMap;

pub use packet::{FlowState, Packet};

use crate::model::{BaseChain, Element, Expression, MetaKey, NftTable, PayloadBase, Verdict};

/// Deepest jump that is followed. Our tables jump once.
const DEPTH_MAX: usize = 8;

/// The end of a packet's way through a base chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// `true` if the packet passes.
    pub accepted: bool,
    /// Counters that counted it, in their order. The last one is that of the rule that decided.
    pub counters: Vec<String>,
    /// Number of log lines, if no limit held them back.
    pub log_lines: usize,
    /// Mark of its flow afterwards.
    pub mark: u32,
}

/// Registers and results while a packet is followed.
#[derive(Debug, Default)]
struct Machine {
    registers: BTreeMap<u8, [u8; 4]>,
    counters: Vec<String>,
    log_lines: usize,
    /// Mark of the packet's flow.
    mark: u32,
}

/// Follows a packet through the forward chain. Byte limits count as not exceeded.
#[must_use]
pub fn decide(table: &NftTable, packet: &Packet) -> Decision {
    follow(table, packet, BaseChain::Forward)
}

/// Follows a packet that arrives, before fragments are put together. Limits count as not exceeded.
#[must_use]
pub fn decide_arriving(table: &NftTable, packet: &Packet) -> Decision {
    follow(table, packet, BaseChain::Prerouting)
}

/// Follows a packet for the firewall itself. Limits count as not exceeded.
#[must_use]
pub fn decide_input(table: &NftTable, packet: &Packet) -> Decision {
    follow(table, packet, BaseChain::Input)
}

/// Follows a packet that the firewall sends: one of its own comes in by no interface. The kernel shows
/// forwarded packets here too if they change VRFs.
#[must_use]
pub fn decide_output(table: &NftTable, packet: &Packet) -> Decision {
    follow(table, packet, BaseChain::Output)
}

fn follow(table: &NftTable, packet: &Packet, hook: BaseChain) -> Decision {
    let mut machine = Machine {
        mark: packet.mark,
        ..Machine::default()
    };
    let base = table
        .chains
        .iter()
        .find(|(_, chain)| chain.base == Some(hook));
    let verdict = base.and_then(|(name, _)| machine.chain(table, name, packet, 0));
    Decision {
        accepted: verdict.map_or_else(|| hook.accepts(), |verdict| verdict == Verdict::Accept),
        counters: machine.counters,
        log_lines: machine.log_lines,
        mark: machine.mark,
    }
}

impl Machine {
    /// The verdict of a chain. `None` if its end is reached.
    fn chain(
        &mut self,
        table: &NftTable,
        name: &str,
        packet: &Packet,
        depth: usize,
    ) -> Option<Verdict> {
        if depth > DEPTH_MAX {
            return Some(Verdict::Drop);
        }
        for rule in &table.chains.get(name)?.rules {
            let matched = rule
                .expressions
                .iter()
                .all(|expression| self.step(table, expression, packet));
            let Some(Expression::Verdict(verdict)) = rule.expressions.last() else {
                continue;
            };
            if !matched {
                continue;
            }
            let decided = match verdict {
                Verdict::Jump(target) => self.chain(table, target, packet, depth + 1),
                Verdict::Return => return None,
                end => Some(end.clone()),
            };
            if decided.is_some() {
                return decided;
            }
        }
        None
    }

    /// `false` if the rule ends here.
    fn step(&mut self, table: &NftTable, expression: &Expression, packet: &Packet) -> bool {
        match expression {
            Expression::Meta { key, register } => {
                let value = match key {
                    MetaKey::InputName => packet::interface(&packet.input),
                    MetaKey::OutputName => packet::interface(&packet.output),
                    MetaKey::Family => vec![if packet.source.is_ipv4() { 2 } else { 10 }],
                    MetaKey::Protocol => vec![packet.protocol],
                    MetaKey::SocketUser if packet.input.is_empty() => vec![0; 4],
                    MetaKey::SocketUser => return false,
                };
                self.store(*register, &value);
                true
            }
            Expression::Payload {
                base,
                offset,
                length,
                register,
            } => match packet.bytes(*base == PayloadBase::Network, *offset, *length) {
                Some(value) => {
                    self.store(*register, &value);
                    true
                }
                None => false,
            },
            Expression::HasFragmentHeader { register } => {
                let is_there = packet.is_fragment && packet.source.is_ipv6();
                self.store(*register, &[u8::from(is_there)]);
                packet.source.is_ipv6()
            }
            Expression::CtState { register } => {
                self.store(*register, &packet.state.bits().to_ne_bytes());
                true
            }
            Expression::CtDirection { register } => {
                self.store(*register, &[u8::from(packet.is_reply)]);
                true
            }
            Expression::Mask { register, mask } => {
                let value = self.load(*register, mask.len());
                let kept: Vec<u8> = value.iter().zip(mask).map(|(a, b)| a & b).collect();
                self.store(*register, &kept);
                true
            }
            Expression::Replace {
                register,
                mask,
                value,
            } => {
                self.replace(*register, mask, value);
                true
            }
            Expression::Equal { register, value } => self.load(*register, value.len()) == *value,
            Expression::NotEqual { register, value } => self.load(*register, value.len()) != *value,
            _ => self.act(table, expression),
        }
    }

    fn act(&mut self, table: &NftTable, expression: &Expression) -> bool {
        match expression {
            Expression::Lookup {
                set,
                register,
                destination,
            } => self.look_up(table, set, *register, *destination),
            Expression::LookupMissing { set, register } => {
                !self.look_up(table, set, *register, None)
            }
            Expression::CtMark { register } => {
                self.store(*register, &self.mark.to_ne_bytes());
                true
            }
            Expression::SetCtMark { register } => {
                let mark = self.load(*register, 4);
                self.mark = mark.try_into().map_or(0, u32::from_ne_bytes);
                true
            }
            Expression::Count(counter) => {
                self.counters.push(counter.clone());
                true
            }
            Expression::CountByMap { map, register } => {
                let Some(Element::Counter(counter)) = self.element(table, map, *register) else {
                    return false;
                };
                self.counters.push(counter);
                true
            }
            Expression::OverBytes(_)
            | Expression::OverPackets { .. }
            | Expression::OverPacketsByKey { .. } => false,
            Expression::Log(_) => {
                self.log_lines += 1;
                true
            }
            Expression::Load { register, value } => {
                self.store(*register, value);
                true
            }
            _ => true,
        }
    }

    /// `true` if a set has the key in a register; loads the data of the element.
    fn look_up(
        &mut self,
        table: &NftTable,
        set: &str,
        register: u8,
        destination: Option<u8>,
    ) -> bool {
        let element = self.element(table, set, register);
        if let (Some(to), Some(Element::Data(data))) = (destination, &element) {
            self.store(to, data);
        }
        element.is_some()
    }

    fn element(&self, table: &NftTable, set: &str, register: u8) -> Option<Element> {
        let set = table.sets.get(set)?;
        let len = usize::try_from(set.spec.key_len).ok()?;
        set.elements.get(&self.load(register, len)).cloned()
    }

    /// Keeps the bits of a mask, and sets those of a value.
    fn replace(&mut self, register: u8, mask: &[u8], value: &[u8]) {
        let old = self.load(register, mask.len());
        let pairs = old.iter().zip(mask).zip(value);
        let new: Vec<u8> = pairs
            .map(|((old, mask), value)| (old & mask) ^ value)
            .collect();
        self.store(register, &new);
    }

    fn store(&mut self, register: u8, value: &[u8]) {
        for (register, bytes) in (register..).zip(value.chunks(4)) {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            self.registers.insert(register, word);
        }
    }

    fn load(&self, register: u8, length: usize) -> Vec<u8> {
        let words = (register..).take(length.div_ceil(4));
        let mut value: Vec<u8> = words
            .flat_map(|word| self.registers.get(&word).copied().unwrap_or([0; 4]))
            .collect();
        value.truncate(length);
        value
    }
}
