//! Authorisation of the public API.
//!
//! The table is the contract itself: each method names in its options the one kind of caller it is
//! for and the exact roles ([`proto_public::Scope`]); a build without them fails. Roles are sets, not
//! a ladder: an owner may call only methods that list OWNER.
//!
//! [`authorise`] decides a typed request, [`authorise_path`] a call known by its path. Both need a
//! [`Principal`] (the caller and the rights of its token) and a [`Directory`] (current memberships).
//! [`Decided::under`] applies the site's own policies. Calls of other APIs have a policy of their own,
//! and [`permit_facade`] makes their permits. [`may_grant`] checks the rights of a new token.
//!
//! Invariants:
//! - a subject that the caller may not see is reported as not found, never as forbidden;
//! - a token never reaches further than its user does at the time of the call: losing a membership
//!   narrows every token at once;
//! - a caller's [`Permit`] is created only by a decision of this crate; writes without a caller name
//!   their [`SystemActor`];
//! - finding method, roles and subject of a typed request compares no paths and builds no strings
//!   (the permit then copies the subject);
//! - no token is granted a right that exceeds those of the token or user that asks for it.

mod call;
mod component;
mod decide;
mod decided;
mod denied;
mod directory;
mod facade;
mod facade_method;
mod grant;
mod guard;
mod judge;
mod permissions;
mod permit;
mod principal;
mod roles;
mod standing;

pub use call::{AuditedCall, Recorded};
pub use component::ComponentProfile;
pub use decide::{authorise, authorise_method, authorise_path};
pub use decided::Decided;
pub use denied::Denied;
pub use directory::{Directory, InProject, Memberships};
pub use facade::{granted_role, permit_facade};
pub use facade_method::FacadeMethod;
pub use grant::{Elevation, may_grant};
pub use guard::{Reach, Widening, is_judged, is_of_platform, is_way_back, widening};
pub use judge::{Judge, Ruling, Unjudged};
pub use permissions::{MethodSet, Permissions};
pub use permit::{Actor, Permit, SystemActor};
pub use principal::{Principal, PrincipalKind, TokenRights};
pub use roles::{project_role, tenant_role};
pub use standing::platform_role;
