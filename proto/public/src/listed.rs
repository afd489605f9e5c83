//! The one answer that is large: a list of machines.

use bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, message, skip_field};
use prost::{DecodeError, Message};

use crate::api::v2::Machine;

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
