//! The facts about a call from which the input document is built.

use std::collections::BTreeMap;
use std::net::IpAddr;

use control_authz::{Denied, Permit, Principal};
use proto_public::Method;

use crate::{Moment, Relation};

/// The object that a request names beside its subject, if the caller may see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resource {
    /// Kind of the object, for example `machine`.
    pub kind: &'static str,
    /// Id of the object.
    pub id: String,
    /// Partition of the object.
    pub partition: Option<String>,
    /// Size of a machine.
    pub size: Option<String>,
    /// Project that the object belongs to.
    pub project: Option<String>,
    /// Labels of the object.
    pub labels: BTreeMap<String, String>,
}

/// The facts about one call.
#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    /// The called method.
    pub method: &'static Method,
    /// The caller.
    pub who: &'a Principal,
    /// `true` if the caller administers the platform.
    pub is_of_platform: bool,
    /// The tenant, project or machine of the call.
    pub subject: Option<&'a str>,
    /// The caller's relation to the subject.
    pub relation: &'a Relation,
    /// The table's decision.
    pub table: &'a Result<Permit, Denied>,
    /// Address of the caller.
    pub address: Option<IpAddr>,
    /// The partition that the token is bound to.
    pub partition: Option<&'a str>,
    /// The request with its secrets removed.
    pub request: Option<&'a serde_json::Value>,
    /// The object that the request names.
    pub resource: Option<&'a Resource>,
    /// Time of the call.
    pub now: Moment,
}
