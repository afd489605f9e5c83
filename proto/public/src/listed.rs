//! Answers that are lists, and machines of a list.

use prost::Message;

use crate::api::v2::{Machine, Partition, Size};

/// An answer with exactly one repeated field of messages: its list.
pub trait ListAnswer: Message + Default {
    /// An item of the list.
    type Item: Message;
    /// Number of the repeated field.
    const FIELD: u32;
}

/// Partition and size that many machines of a list share, encoded once.
///
/// Concatenated protobuf encodings of parts of a message are an encoding of the message.
#[derive(Clone, Debug, Default)]
pub struct MachinePlace {
    partition: Vec<u8>,
    size: Vec<u8>,
}

impl MachinePlace {
    /// Encodes a partition and a size.
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

    /// Appends the encoding of a machine, with partition and size of this place instead of its own.
    pub fn encode(&self, machine: Machine, out: &mut Vec<u8>) {
        // Fields are written in the order of their numbers, so that the bytes equal those of an
        // ordinary encoder.
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
        head.encode_raw(out);
        out.extend_from_slice(&self.partition);
        middle.encode_raw(out);
        out.extend_from_slice(&self.size);
        tail.encode_raw(out);
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::{ListAnswer, MachinePlace};
    use crate::admin::v2::TenantServiceListResponse;
    use crate::api::v2::{
        Machine, MachineHardware, MachineServiceListResponse, MachineStatus, Meta, Partition, Size,
        Tenant,
    };
    use crate::metalmesh::admin::v1::AuditTrailServiceListResponse;

    #[test]
    fn an_answer_knows_its_list() {
        assert_eq!(<MachineServiceListResponse as ListAnswer>::FIELD, 1);
        assert_eq!(<AuditTrailServiceListResponse as ListAnswer>::FIELD, 2);
        let answer = TenantServiceListResponse {
            tenants: vec![<TenantServiceListResponse as ListAnswer>::Item::default()],
            next_page: None,
        };
        assert_eq!(answer.tenants, [Tenant::default()]);
    }

    #[test]
    fn a_machine_in_parts_is_the_same_machine() {
        let whole = Machine {
            uuid: "a".into(),
            meta: Some(Meta {
                generation: 7,
                ..Meta::default()
            }),
            rack: "r1".into(),
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
            ..Machine::default()
        };
        let place = MachinePlace::of(whole.partition.clone(), whole.size.clone());
        let mut sent = Vec::new();
        place.encode(whole.clone(), &mut sent);
        assert_eq!(sent, whole.encode_to_vec());
        let nowhere = Machine {
            partition: None,
            size: None,
            ..whole
        };
        sent.clear();
        MachinePlace::default().encode(nowhere.clone(), &mut sent);
        assert_eq!(sent, nowhere.encode_to_vec());
    }
}
