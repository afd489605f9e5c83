//! The tables: one ordered map per kind of object, and indexes derived from them.

mod change;
mod headed;
mod index;
mod touched;
mod tx;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use proto_errors::Error;
use proto_types::{
    AllocationId, BootTicketId, ClaimId, ComponentId, Digest, ImageId, JoinTicketId, LayoutId,
    MachineId, NetworkId, NodeAllocationId, OrderId, PartitionId, PoolId, ProjectId, ReservationId,
    SizeId, SwitchId, TenantId, TokenId,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::allocation::entity::*;
use crate::audit::entity::*;
use crate::catalog::entity::*;
use crate::claim::entity::*;
use crate::cluster::entity::*;
use crate::firewall::entity::*;
use crate::identity::entity::*;
use crate::lease::entity::*;
use crate::machine::entity::*;
use crate::network::entity::*;
use crate::node::entity::*;
use crate::pool::entity::*;
use crate::rollout::entity::*;
use crate::switch::entity::*;
use crate::tenancy::entity::*;

pub use self::change::{Change, CodecError};
use self::change::{decode, encode};

pub(crate) use index::{Index, Indexed, QueuePlace, ShapeHosts};
pub(crate) use tx::Tx;

/// A row of a table: an object, and the revision of its last change.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot<T> {
    /// The object.
    pub value: Arc<T>,
    /// The tables' revision after the command that last changed it. 0 means that it was stored
    /// before revisions were kept.
    pub revision: u64,
}

/// A type of object that the tables hold.
pub trait Entity:
    Clone + fmt::Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Type of its key.
    type Key: Clone + Ord + fmt::Debug + fmt::Display + Send + Sync + 'static;
    /// Its kind.
    const KIND: Kind;
    /// Its key.
    fn key(&self) -> Self::Key;
    #[doc(hidden)]
    fn table(tables: &Tables) -> &BTreeMap<Self::Key, Slot<Self>>;
    #[doc(hidden)]
    fn table_mut(tables: &mut Tables) -> &mut BTreeMap<Self::Key, Slot<Self>>;
    #[doc(hidden)]
    fn record(this: Arc<Self>) -> Record;
    #[doc(hidden)]
    fn index(&self, _index: &mut Index) {}
    #[doc(hidden)]
    fn unindex(&self, _index: &mut Index) {}
}

macro_rules! tables {
    ($($(#[$mark:ident])? $entity:ident $field:ident $key:ty, $name:literal, $id:expr;)*) => {
        /// Kinds of objects. The names are in storage and in messages, and never change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Kind { $(#[doc = $name] $entity,)* }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$entity,)*];
            /// Name in storage and in messages.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$entity => $name,)* }
            }
        }

        /// An object of any kind; cheap to clone.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Record { $(#[doc = $name] $entity(Arc<$entity>),)* }

        impl Record {
            /// Its kind.
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$entity(_) => Kind::$entity,)* }
            }
            /// Its key as text.
            pub fn key(&self) -> String {
                match self { $(Self::$entity(object) => object.key().to_string(),)* }
            }
            /// Encodes the object for storage: CBOR, fields by name, so that a later program can
            /// add fields.
            ///
            /// # Errors
            /// The object cannot be encoded.
            pub fn encode(&self) -> Result<Vec<u8>, CodecError> {
                match self { $(Self::$entity(object) => encode(Kind::$entity, object.as_ref()),)* }
            }
            /// Decodes an object of a kind from storage.
            ///
            /// # Errors
            /// The bytes are not an object of this kind.
            pub fn decode(kind: Kind, bytes: &[u8]) -> Result<Self, CodecError> {
                match kind { $(Kind::$entity => decode(kind, bytes).map(Self::$entity),)* }
            }
        }

        /// All objects, in memory. Cloning copies pointers, not objects.
        #[derive(Clone, Default)]
        pub struct Tables {
            revision: u64,
            index: Index,
            $($field: BTreeMap<$key, Slot<$entity>>,)*
        }

        impl Tables {
            /// Loads a stored object, at start or from a snapshot, with the revision that it was
            /// stored with. The revision of the tables does not change.
            ///
            /// # Errors
            /// The bytes are not an object of this kind.
            pub fn load(
                &mut self,
                kind: Kind,
                bytes: &[u8],
                revision: u64,
            ) -> Result<(), CodecError> {
                match Record::decode(kind, bytes)? {
                    $(Record::$entity(object) => { self.put_raw(object, revision); })*
                }
                Ok(())
            }
            /// Every object of a kind in the order of keys, each with the revision of its last
            /// change.
            pub fn records(&self, kind: Kind) -> Box<dyn Iterator<Item = (Record, u64)> + '_> {
                match kind {
                    $(Kind::$entity => Box::new(self.$field.values().map(|slot| {
                        (Record::$entity(Arc::clone(&slot.value)), slot.revision)
                    })),)*
                }
            }
            /// Every object, kind by kind in the order of keys.
            pub fn dump(&self) -> impl Iterator<Item = Record> + '_ {
                Kind::ALL.iter().flat_map(|kind| self.records(*kind)).map(|(record, _)| record)
            }
        }

        $(impl Entity for $entity {
            type Key = $key;
            const KIND: Kind = Kind::$entity;
            fn key(&self) -> $key {
                let get: fn(&Self) -> $key = $id;
                get(self)
            }
            fn table(tables: &Tables) -> &BTreeMap<$key, Slot<Self>> {
                &tables.$field
            }
            fn table_mut(tables: &mut Tables) -> &mut BTreeMap<$key, Slot<Self>> {
                &mut tables.$field
            }
            fn record(this: Arc<Self>) -> Record {
                Record::$entity(this)
            }
            $(tables!(@$mark);)?
        })*
    };
    (@indexed) => {
        fn index(&self, index: &mut Index) {
            Indexed::add_to(self, index);
        }
        fn unindex(&self, index: &mut Index) {
            Indexed::remove_from(self, index);
        }
    };
}

tables! {
    #[indexed] Tenant tenants TenantId, "tenant", |tenant| tenant.login.clone();
    #[indexed] Project projects ProjectId, "project", |project| project.id;
    #[indexed] Token tokens TokenId, "token", |token| token.id;
    Partition partitions PartitionId, "partition", |partition| partition.id.clone();
    Size sizes SizeId, "size", |size| size.id.clone();
    SizeReservation reservations ReservationId, "size-reservation", |reservation| reservation.id;
    SizeImageConstraint image_constraints SizeId, "size-image-constraint", |constraint| constraint.size.clone();
    Image images ImageId, "image", |image| image.id.clone();
    Layout layouts LayoutId, "filesystem-layout", |layout| layout.id.clone();
    #[indexed] Network networks NetworkId, "network", |network| network.id.clone();
    #[indexed] Ip ips IpKey, "ip", |ip| IpKey { namespace: ip.namespace, ip: ip.ip };
    #[indexed] Machine machines MachineId, "machine", |machine| machine.id;
    EventLog event_logs MachineId, "event-log", |log| log.machine;
    #[indexed] Switch switches SwitchId, "switch", |switch| switch.id.clone();
    #[indexed] BmcOrder orders OrderId, "bmc-order", |order| order.id;
    JoinTicket join_tickets JoinTicketId, "join-ticket", |ticket| ticket.id;
    #[indexed] BootTicket boot_tickets BootTicketId, "boot-ticket", |ticket| ticket.id;
    #[indexed] Certificate certificates String, "certificate", |certificate| certificate.serial.clone();
    CaRecord cas String, "ca", |record| record.id.clone();
    SigningKey signing_keys String, "signing-key", |key| key.id.clone();
    #[indexed] AuditEntry audit u64, "audit", |entry| entry.sequence;
    ControlNode control_nodes u64, "control-node", |node| node.id;
    Idempotency idempotency IdempotencyKey, "idempotency",
        |idempotency| IdempotencyKey { project: idempotency.project, key: idempotency.key.clone() };
    Quota quotas QuotaSubject, "quota", |quota| quota.subject.clone();
    Component components ComponentId, "component", |component| component.id;
    User users TenantId, "user", |user| user.login.clone();
    AuditAnchor audit_anchors String, "audit-anchor", |anchor| anchor.name.clone();
    #[indexed] Invite invites Digest, "invite", |invite| invite.id.clone();
    AuditExport audit_exports String, "audit-export", |export| export.name.clone();
    Policy policies String, "policy", |policy| policy.name.clone();
    VpnMember vpn_members AllocationId, "vpn-member", |member| member.allocation;
    Identity identities String, "identity", |identity| identity.id.clone();
    CaRotation ca_rotations String, "ca-rotation", |rotation| rotation.name.clone();
    ClusterClock cluster_clocks String, "cluster-clock", |clock| clock.name.clone();
    CoolingNumber cooling_numbers PoolNumber, "cooling-number", |cooling| cooling.number;
    PoolCursor pool_cursors String, "pool-cursor", |cursor| cursor.pool.clone();
    Settings settings String, "settings", |settings| settings.name.clone();
    FirewallRuleSet firewall_rules RuleSetKey, "firewall-rules", |rules| rules.set.clone();
    FirewallRuleHistory firewall_histories RuleHistoryKey, "firewall-rules-history",
        |history| RuleHistoryKey { set: history.set.clone(), number: history.revision.number };
    FirewallStatus firewall_statuses MachineId, "firewall-status", |status| status.machine;
    FirewallRelease firewall_releases String, "firewall-release", |release| release.name.clone();
    Rollout rollouts String, "rollout", |rollout| rollout.kind.as_str().to_owned();
    AgentProgram agent_programs String, "agent-program", |program| program.identity.clone();
    SiteRelease site_releases String, "site-release", |release| release.kind.as_str().to_owned();
    #[indexed] Lease leases MachineId, "lease", |lease| lease.machine;
    #[indexed] NodeAllocation node_allocations NodeAllocationId, "node-allocation", |held| held.id;
    #[indexed] HostPool host_pools PoolId, "pool", |pool| pool.id.clone();
    #[indexed] PoolHost pool_hosts MachineId, "pool-host", |host| host.machine;
    ProjectLabels project_labels ProjectId, "project-labels", |labels| labels.project;
    #[indexed] Claim host_claims ClaimId, "claim", |claim| claim.id;
    #[indexed] NodeRecord nodes MachineId, "node", |node| node.machine;
    #[indexed] NodeDocument node_documents Uuid, "node-document", |document| document.id;
}

impl Tables {
    /// Empty tables at revision 0.
    pub fn new() -> Self {
        Self::default()
    }
    /// Number of commands that changed something: the generation of every derived state.
    pub const fn revision(&self) -> u64 {
        self.revision
    }
    /// Restores the revision, at start or from a snapshot.
    pub const fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
    /// The object of this key.
    pub fn get<T: Entity>(&self, key: &T::Key) -> Option<&Arc<T>> {
        T::table(self).get(key).map(|slot| &slot.value)
    }
    /// The revision of the command that last changed the object of this key.
    pub fn revision_of<T: Entity>(&self, key: &T::Key) -> Option<u64> {
        T::table(self).get(key).map(|slot| slot.revision)
    }
    /// The object of this key.
    ///
    /// # Errors
    /// `NotFound` with the kind and the key.
    pub fn require<T: Entity>(&self, key: &T::Key) -> Result<&Arc<T>, Error> {
        self.get::<T>(key)
            .ok_or_else(|| Error::not_found(T::KIND.as_str(), key))
    }
    /// Every object of a kind, in the order of keys.
    pub fn all<T: Entity>(&self) -> impl DoubleEndedIterator<Item = &Arc<T>> + '_ {
        T::table(self).values().map(|slot| &slot.value)
    }
    /// The table of a kind, for ranges and lookups.
    pub fn table<T: Entity>(&self) -> &BTreeMap<T::Key, Slot<T>> {
        T::table(self)
    }
    /// SHA-256 over all objects and revisions: equal on all replicas at the same revision.
    ///
    /// # Errors
    /// An object cannot be encoded.
    pub fn state_hash(&self) -> Result<[u8; 32], CodecError> {
        let mut hash = Sha256::new();
        hash.update(self.revision.to_be_bytes());
        for (record, revision) in self.dump_revised() {
            let bytes = record.encode()?;
            hash.update(record.kind().as_str());
            hash.update(revision.to_be_bytes());
            // The length delimits the objects: without it, bytes could move from one to the next
            // and leave the hash the same.
            hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(bytes);
        }
        Ok(hash.finalize().into())
    }

    fn dump_revised(&self) -> impl Iterator<Item = (Record, u64)> + '_ {
        Kind::ALL.iter().flat_map(|kind| self.records(*kind))
    }
    /// A copy of the indexes, to compare in tests.
    #[doc(hidden)]
    pub fn indexes(&self) -> impl PartialEq + fmt::Debug + use<> {
        self.index.clone()
    }
    pub(crate) const fn index(&self) -> &Index {
        &self.index
    }
    pub(crate) fn put_raw<T: Entity>(&mut self, value: Arc<T>, revision: u64) -> Option<Slot<T>> {
        let slot = Slot {
            value: Arc::clone(&value),
            revision,
        };
        let old = T::table_mut(self).insert(value.key(), slot);
        // The old value leaves the index before the new one enters: entries that both have would
        // otherwise be removed again.
        if let Some(old) = &old {
            old.value.unindex(&mut self.index);
        }
        value.index(&mut self.index);
        old
    }
    pub(crate) fn remove_raw<T: Entity>(&mut self, key: &T::Key) -> Option<Slot<T>> {
        let old = T::table_mut(self).remove(key);
        if let Some(old) = &old {
            old.value.unindex(&mut self.index);
        }
        old
    }
}

impl PartialEq for Tables {
    fn eq(&self, other: &Self) -> bool {
        self.revision == other.revision && self.dump_revised().eq(other.dump_revised())
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables")
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| Error::invalid("kind", format!("\"{text}\" is not one that we know")))
    }
}
