//! The tables: one ordered map per kind of object, and indexes derived from them.

mod change;
mod index;
mod tx;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use proto_errors::Error;
use proto_types::{
    AllocationId, BootTicketId, ComponentId, Digest, ImageId, JoinTicketId, LayoutId, MachineId,
    NetworkId, OrderId, PartitionId, ProjectId, ReservationId, SizeId, SwitchId, TenantId, TokenId,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::audit::entity::*;
use crate::catalog::entity::*;
use crate::cluster::entity::*;
use crate::identity::entity::*;
use crate::machine::entity::*;
use crate::network::entity::*;
use crate::switch::entity::*;
use crate::tenancy::entity::*;

pub use self::change::{Change, CodecError};
use self::change::{decode, encode};

pub(crate) use index::{Index, Indexed};
pub(crate) use tx::Tx;

/// A place in a table: an object, and since when it is as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot<T> {
    /// The object.
    pub value: Arc<T>,
    /// The tables' revision of the command that last changed it; 0 when it was stored before
    /// revisions were kept.
    pub revision: u64,
}

/// An object that a table holds.
pub trait Entity:
    Clone + fmt::Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// What it is found by.
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
        /// Kinds of objects. The names are for storage and for people and never change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Kind { $(#[doc = $name] $entity,)* }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$entity,)*];
            /// Name for storage and for people.
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
                match self { $(Self::$entity(it) => it.key().to_string(),)* }
            }
            /// As bytes for storage: CBOR, fields by name, so that fields can be added.
            pub fn encode(&self) -> Result<Vec<u8>, CodecError> {
                match self { $(Self::$entity(it) => encode(Kind::$entity, it.as_ref()),)* }
            }
            /// Back from bytes.
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
            /// Puts a stored object in its place, at start or out of a snapshot, with the
            /// revision that it was stored with.
            pub fn load(
                &mut self,
                kind: Kind,
                bytes: &[u8],
                revision: u64,
            ) -> Result<(), CodecError> {
                match Record::decode(kind, bytes)? {
                    $(Record::$entity(it) => { self.put_raw(it, revision); })*
                }
                Ok(())
            }
            /// Every object of a kind in the order of keys, each with the revision of the
            /// command that last changed it.
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
    #[indexed] Tenant tenants TenantId, "tenant", |it| it.login.clone();
    #[indexed] Project projects ProjectId, "project", |it| it.id;
    #[indexed] Token tokens TokenId, "token", |it| it.id;
    Partition partitions PartitionId, "partition", |it| it.id.clone();
    Size sizes SizeId, "size", |it| it.id.clone();
    SizeReservation reservations ReservationId, "size-reservation", |it| it.id;
    SizeImageConstraint image_constraints SizeId, "size-image-constraint", |it| it.size.clone();
    Image images ImageId, "image", |it| it.id.clone();
    Layout layouts LayoutId, "filesystem-layout", |it| it.id.clone();
    #[indexed] Network networks NetworkId, "network", |it| it.id.clone();
    #[indexed] Ip ips IpKey, "ip", |it| IpKey { namespace: it.namespace, ip: it.ip };
    #[indexed] Machine machines MachineId, "machine", |it| it.id;
    EventLog event_logs MachineId, "event-log", |it| it.machine;
    #[indexed] Switch switches SwitchId, "switch", |it| it.id.clone();
    #[indexed] BmcOrder orders OrderId, "bmc-order", |it| it.id;
    JoinTicket join_tickets JoinTicketId, "join-ticket", |it| it.id;
    #[indexed] BootTicket boot_tickets BootTicketId, "boot-ticket", |it| it.id;
    #[indexed] Certificate certificates String, "certificate", |it| it.serial.clone();
    CaRecord cas String, "ca", |it| it.id.clone();
    SigningKey signing_keys String, "signing-key", |it| it.id.clone();
    #[indexed] AuditEntry audit u64, "audit", |it| it.sequence;
    ControlNode control_nodes u64, "control-node", |it| it.id;
    Idempotency idempotency IdempotencyKey, "idempotency",
        |it| IdempotencyKey { project: it.project, key: it.key.clone() };
    Quota quotas QuotaSubject, "quota", |it| it.subject.clone();
    Component components ComponentId, "component", |it| it.id;
    User users TenantId, "user", |it| it.login.clone();
    AuditAnchor audit_anchors String, "audit-anchor", |it| it.name.clone();
    #[indexed] Invite invites Digest, "invite", |it| it.id.clone();
    AuditExport audit_exports String, "audit-export", |it| it.name.clone();
    Policy policies String, "policy", |it| it.name.clone();
    VpnMember vpn_members AllocationId, "vpn-member", |it| it.allocation;
    Identity identities String, "identity", |it| it.id.clone();
    CaRotation ca_rotations String, "ca-rotation", |it| it.name.clone();
    ClusterClock cluster_clocks String, "cluster-clock", |clock| clock.name.clone();
    CoolingNumber cooling_numbers PoolNumber, "cooling-number", |it| it.number;
    PoolCursor pool_cursors String, "pool-cursor", |it| it.pool.clone();
    Settings settings String, "settings", |it| it.name.clone();
}

impl Tables {
    /// Nothing at all.
    pub fn new() -> Self {
        Self::default()
    }
    /// How many commands changed something so far: the generation of everything derived.
    pub const fn revision(&self) -> u64 {
        self.revision
    }
    /// Restores the count, at start or out of a snapshot.
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
    /// The object of this key, or `NotFound` with its kind and key.
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
    /// SHA-256 over everything: equal on all replicas at the same revision.
    pub fn state_hash(&self) -> Result<[u8; 32], CodecError> {
        let mut hash = Sha256::new();
        hash.update(self.revision.to_be_bytes());
        for (record, revision) in self.dump_revised() {
            let bytes = record.encode()?;
            hash.update(record.kind().as_str());
            hash.update(revision.to_be_bytes());
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
