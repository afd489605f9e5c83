//! The one place that decides about calls: the credential, the scope, the policy.

mod caller;
mod credential;
mod keystone_role;
mod policy;
mod seen_node;

pub(crate) use caller::FacadeCaller;
pub(crate) use credential::{FacadeCredential, FacadeScope};
pub(crate) use keystone_role::KeystoneRole;
pub(crate) use policy::AccessPolicy;
pub(crate) use seen_node::{SeenNode, find_node, seen_node};
