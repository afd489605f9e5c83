//! Nodes of Ironic's API: enrolment, fields, documents, and machines that their nodes withhold.

mod documents;
mod enrolment;
mod fields;
mod offers;
mod properties;
mod take_over;
mod tenancy;
mod unconfirmed;
mod updates;
mod wipes;
mod writers;

use control_state::*;
use proto_types::*;
use uuid::Uuid;

use crate::world::*;

/// Milliseconds of an hour.
pub(crate) const HOUR_MS: u64 = 3_600_000;

/// The node of machine `number` without any field.
pub(crate) fn enrol(number: u128) -> EnrolNode {
    EnrolNode {
        machine: id(number),
        project: None,
        owner: None,
        resource_class: None,
        content: NodeContent::default(),
    }
}

/// A content with a name.
pub(crate) fn called(name: &str) -> NodeContent {
    NodeContent {
        name: Some(name.to_owned()),
        ..NodeContent::default()
    }
}

/// A content with a port at the card of machine `number`.
pub(crate) fn with_card(number: u128) -> NodeContent {
    NodeContent {
        ports: [(mac(number), NodePort::default())].into(),
        ..NodeContent::default()
    }
}

/// A content in maintenance.
pub(crate) fn maintained(reason: &str) -> NodeContent {
    NodeContent {
        maintenance: Some(NodeMaintenance {
            reason: reason.to_owned(),
            since: ms(1),
        }),
        ..NodeContent::default()
    }
}

/// A content that a verb left in a state.
pub(crate) fn staged(state: ProvisionState) -> NodeContent {
    NodeContent {
        stage: Some(NodeStage {
            state,
            since: ms(1),
            boot_id: String::new(),
            phase_since: ms(1),
            error: String::new(),
        }),
        ..NodeContent::default()
    }
}

/// A port group without a name.
pub(crate) fn group(number: u128) -> NodePortGroup {
    NodePortGroup {
        id: id(number),
        name: String::new(),
        address: None,
        fields: JsonFields::new(),
        created_at: ms(1),
        updated_at: Timestamp::ZERO,
    }
}

/// A document without a name, of the site.
pub(crate) fn document(number: u128, kind: DocumentKind) -> SetNodeDocument {
    SetNodeDocument {
        id: id(number),
        kind,
        expected: 0,
        name: String::new(),
        owner: None,
        public: false,
        fields: JsonFields::new(),
    }
}

/// A pool that admits nobody.
pub(crate) fn empty_pool(name: &str) -> SetPool {
    SetPool {
        id: text(name),
        expected: None,
        labels: Labels::new(),
        description: String::new(),
        policies: vec![],
        published: [].into(),
        floor: WipeLevel::Erase,
        reuse_max_ms: 0,
        reuse_floor: None,
        metadata: MetadataRules::default(),
        on_revoke: RevokeRule::Keep,
    }
}

/// Machine `number` as a host of a pool.
pub(crate) fn pool_host(number: u128, pool: &str) -> SetPoolHost {
    SetPoolHost {
        machine: id(number),
        expected: None,
        pool: text(pool),
        labels: Labels::new(),
        annotations: Labels::new(),
        taints: [].into(),
        domain: String::new(),
        only: vec![],
        cordon: None,
    }
}

impl World {
    pub(crate) fn node(&self, number: u128) -> &NodeRecord {
        self.tables.get::<NodeRecord>(&id(number)).unwrap()
    }

    /// The change of a node by an administrator who read it last.
    pub(crate) fn change(&self, number: u128, content: NodeContent) -> SetNode {
        let record = self.tables.get::<NodeRecord>(&id(number));
        SetNode {
            machine: id(number),
            project: None,
            expected: record.map_or(0, |record| record.meta.generation),
            content,
        }
    }

    /// The change of a node by a project that read it last.
    pub(crate) fn change_by(&self, number: u128, project: u128, content: NodeContent) -> SetNode {
        SetNode {
            project: Some(id(project)),
            ..self.change(number, content)
        }
    }

    /// Replaces the fields of a node.
    pub(crate) fn change_node(&mut self, number: u128, content: NodeContent) {
        let op = self.change(number, content);
        self.ok(op);
    }

    /// Number of the machine that has a node of this name.
    pub(crate) fn named_node(&self, name: &str) -> Option<u128> {
        let id = query::node_named(&self.tables, name)?;
        Some(id.uuid().as_u128())
    }

    pub(crate) fn has_machine(&self, number: u128) -> bool {
        self.tables.get::<Machine>(&id(number)).is_some()
    }
}

/// The id of a machine as that of another object.
pub(crate) fn uuid(number: u128) -> Uuid {
    Uuid::from_u128(number)
}
