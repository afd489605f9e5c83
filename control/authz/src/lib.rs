//! Who may do what in the public API.
//!
//! The table is the contract itself: each method names in its options the one kind of caller it
//! is for and the exact roles ([`proto_public::Scope`]); a build without them fails. Roles are
//! sets, not a ladder: an owner may call only what lists OWNER.
//!
//! [`authorise`] decides a typed request, [`authorise_path`] a call known by its path. Both need
//! a [`Principal`] (what the token says) and a [`Directory`] (what the state says now: losing a
//! membership or a role narrows every token at once). They yield a [`Permit`], which the store
//! asks for with each write and which nobody outside this crate can make; writes that no caller
//! asked for name their [`SystemActor`].
//!
//! Invariants: what a caller may not see is not found, never forbidden; a token never reaches
//! further than its user does now; finding method, roles and subject of a typed request compares
//! no paths and builds no strings (the permit then copies the subject).
//!
//! What a site adds to the table with policies of its own goes through [`Decided::under`].
//!
//! [`may_grant`] keeps a new token from exceeding the one that asks for it.

mod call;
mod component;
mod decide;
mod denied;
mod directory;
mod grant;
mod permit;
mod principal;
mod roles;
mod site;
mod standing;

pub use call::{AuditedCall, Recorded};
pub use component::ComponentProfile;
pub use decide::{authorise, authorise_method, authorise_path};
pub use denied::Denied;
pub use directory::{Directory, InProject, Memberships};
pub use grant::{Elevation, may_grant};
pub use permit::{Actor, Permit, SystemActor};
pub use principal::{MethodSet, Permissions, Principal, PrincipalKind, TokenRights};
pub use roles::{project_role, tenant_role};
pub use site::{
    Decided, Judge, Reach, Ruling, Unjudged, Widening, is_judged, is_of_platform, is_way_back,
    widening,
};
pub use standing::platform_role;
