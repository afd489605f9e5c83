//! Objects that have a head.

use crate::meta::Meta;

/// An object with a head.
pub(crate) trait Headed {
    fn meta_mut(&mut self) -> &mut Meta;
}

macro_rules! headed {
    ($($entity:ident)*) => {
        $(impl Headed for crate::$entity {
            fn meta_mut(&mut self) -> &mut Meta {
                &mut self.meta
            }
        })*
    };
}

headed! {
    Tenant Project Token Partition Size SizeReservation SizeImageConstraint Image Layout Network
    Ip Machine Switch NodeAllocation HostPool PoolHost Claim NodeRecord NodeDocument
}
