//! The one answer that is large: a list of machines.

use bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, encode_key, encode_varint, message, skip_field};
use prost::{DecodeError, Message};

use crate::api::v2::{Machine, Partition, Size};

/// Number of the field `machines` in both messages that this type stands for.
const MACHINES: u32 = 1;

/// `MachineServiceListResponse` of `metalstack.api.v2` and of `metalstack.admin.v2`, which are the
/// same on the wire.
///
/// A server writes each machine when it is made and forgets it: ten thousand of them as objects
/// take tens of megabytes and more time than everything else in the call. A client reads them
/// into `machines`.
#[derive(Clone, Default, PartialEq)]
pub struct MachineServiceListResponse {
    /// The machines, as they were received.
    pub machines: Vec<Machine>,
    /// Machines to send, encoded; before those in `machines`.
    encoded: Vec<u8>,
}

impl MachineServiceListResponse {
    /// An answer of these machines, to be sent.
    pub fn of(machines: impl IntoIterator<Item = Machine>) -> Self {
        let mut encoded = Vec::new();
        for machine in machines {
            message::encode(MACHINES, &machine, &mut encoded);
        }
        Self {
            machines: Vec::new(),
            encoded,
        }
    }
}

/// What many machines of a list have in common, encoded once: their partition and their size.
///
/// A message that is encoded in parts, one behind the other, is the same message.
#[derive(Clone, Debug, Default)]
pub struct MachinePlace {
    partition: Vec<u8>,
    size: Vec<u8>,
}

impl MachinePlace {
    /// The place that `machine` tells of.
    pub fn of(partition: Option<Partition>, size: Option<Size>) -> Self {
        let partition = Machine {
            partition,
            ..Machine::default()
        };
        let size = Machine {
            size,
            ..Machine::default()
        };
        Self {
            partition: partition.encode_to_vec(),
            size: size.encode_to_vec(),
        }
    }
}

impl MachineServiceListResponse {
    /// Adds a machine to be sent, without `partition` and `size`, which `place` tells.
    pub fn push(&mut self, machine: Machine, place: &MachinePlace) {
        // In the order of fields, as every encoder writes them.
        let Machine {
            uuid,
            meta,
            rack,
            room,
            ..
        } = machine;
        let head = Machine {
            uuid,
            meta,
            ..Machine::default()
        };
        let middle = Machine {
            rack,
            room,
            ..Machine::default()
        };
        let tail = Machine {
            hardware: machine.hardware,
            allocation: machine.allocation,
            status: machine.status,
            recent_provisioning_events: machine.recent_provisioning_events,
            ..Machine::default()
        };
        let parts = [&head, &middle, &tail].map(Message::encoded_len);
        let len = parts.iter().sum::<usize>() + place.partition.len() + place.size.len();
        encode_key(MACHINES, WireType::LengthDelimited, &mut self.encoded);
        encode_varint(len as u64, &mut self.encoded);
        self.encoded.reserve(len);
        head.encode_raw(&mut self.encoded);
        self.encoded.extend_from_slice(&place.partition);
        middle.encode_raw(&mut self.encoded);
        self.encoded.extend_from_slice(&place.size);
        tail.encode_raw(&mut self.encoded);
    }
}

impl std::fmt::Debug for MachineServiceListResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MachineServiceListResponse")
            .field("machines", &self.machines)
            .field("encoded_len", &self.encoded.len())
            .finish()
    }
}

impl Message for MachineServiceListResponse {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.encoded);
        message::encode_repeated(MACHINES, &self.machines, buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag == MACHINES {
            message::merge_repeated(wire_type, &mut self.machines, buf, ctx)
        } else {
            skip_field(wire_type, tag, buf, ctx)
        }
    }

    fn encoded_len(&self) -> usize {
        self.encoded.len() + message::encoded_len_repeated(MACHINES, &self.machines)
    }

    fn clear(&mut self) {
        self.machines.clear();
        self.encoded.clear();
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::MachineServiceListResponse;
    use crate::api::v2::Machine;

    fn machine(uuid: &str) -> Machine {
        Machine {
            uuid: uuid.into(),
            rack: "r1".into(),
            ..Machine::default()
        }
    }

    #[test]
    fn what_is_sent_is_what_the_contract_says() {
        let sent = MachineServiceListResponse::of([machine("a"), machine("b")]);
        for name in ["api", "admin"] {
            let name = format!("metalstack.{name}.v2.MachineServiceListResponse");
            let message = crate::message(&name).expect("in the contract");
            let bytes = sent.encode_to_vec();
            let json =
                crate::json::from_proto(&message, &bytes).expect("the bytes are this message");
            let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
            let wanted = serde_json::json!({"machines": [
                {"uuid": "a", "rack": "r1"}, {"uuid": "b", "rack": "r1"}
            ]});
            assert_eq!(json, wanted, "{name}");
        }
    }

    #[test]
    fn a_machine_in_parts_is_the_same_machine() {
        use crate::api::v2::{MachineHardware, MachineStatus, Meta, Partition, Size};
        let whole = Machine {
            meta: Some(Meta {
                generation: 7,
                ..Meta::default()
            }),
            room: "room".into(),
            partition: Some(Partition {
                id: "p".into(),
                ..Partition::default()
            }),
            size: Some(Size {
                id: "s".into(),
                ..Size::default()
            }),
            hardware: Some(MachineHardware {
                memory: 1,
                ..MachineHardware::default()
            }),
            status: Some(MachineStatus {
                metal_hammer_version: "1".into(),
                ..MachineStatus::default()
            }),
            ..machine("a")
        };
        let place = super::MachinePlace::of(whole.partition.clone(), whole.size.clone());
        let mut sent = MachineServiceListResponse::default();
        sent.push(whole.clone(), &place);
        sent.push(machine("b"), &super::MachinePlace::default());
        let wanted = MachineServiceListResponse::of([whole, machine("b")]);
        assert_eq!(sent.encode_to_vec(), wanted.encode_to_vec());
    }

    #[test]
    fn what_was_sent_is_received() {
        let sent = MachineServiceListResponse::of([machine("a"), machine("b")]);
        let bytes = sent.encode_to_vec();
        assert_eq!(bytes.len(), sent.encoded_len());
        let mut longer = bytes.clone();
        // A field of a newer contract.
        longer.extend([0x52, 1, 7]);
        for bytes in [bytes, longer] {
            let received = MachineServiceListResponse::decode(&bytes[..]).expect("decodes");
            assert_eq!(received.machines, [machine("a"), machine("b")]);
            assert_eq!(received.encode_to_vec(), sent.encode_to_vec());
        }
    }
}
