//! Ids that are UUIDs.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::{ParseError, text_serde};

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// The id that is this UUID.
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }
            /// The UUID itself.
            pub const fn uuid(&self) -> Uuid {
                self.0
            }
        }
        impl FromStr for $name {
            type Err = ParseError;
            fn from_str(text: &str) -> Result<Self, ParseError> {
                Uuid::parse_str(text)
                    .map(Self)
                    .map_err(|_| ParseError::new($what, text, "must be a UUID"))
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }
        text_serde!($name);
    };
}

uuid_id!(
    /// A machine: its SMBIOS UUID. DHCP option 97 is converted to the same byte order.
    MachineId, "machine id"
);
uuid_id!(
    /// A project.
    ProjectId, "project id"
);
uuid_id!(
    /// One allocation of a machine. Each allocation has a new id.
    AllocationId, "allocation id"
);
uuid_id!(
    /// An API token: the `jti` of its JWT.
    TokenId, "token id"
);
uuid_id!(
    /// An IP address as an object. A released address may be acquired again under another id.
    IpId, "ip id"
);
uuid_id!(
    /// An order to a BMC.
    OrderId, "order id"
);
uuid_id!(
    /// A reservation of machines of a size.
    ReservationId, "size reservation id"
);
uuid_id!(
    /// A component of the published stack.
    ComponentId, "component id"
);
uuid_id!(
    /// A one-time ticket of an agent.
    JoinTicketId, "join ticket id"
);
uuid_id!(
    /// A one-time ticket of a booting machine.
    BootTicketId, "boot ticket id"
);
uuid_id!(
    /// One lease of a machine. Each lease has a new id.
    LeaseId, "lease id"
);
uuid_id!(
    /// A node allocation: a machine that is held by class and traits, before it is installed.
    NodeAllocationId, "node allocation id"
);
uuid_id!(
    /// A claim of a host out of a pool.
    ClaimId, "claim id"
);
