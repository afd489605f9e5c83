//! Replies to commands.

use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::MachineId;
use serde::{Deserialize, Serialize};

use crate::allocation::entity::NodeAllocation;
use crate::catalog::entity::{
    Image, Layout, Partition, Size, SizeImageConstraint, SizeReservation,
};
use crate::claim::entity::Claim;
use crate::cluster::entity::{ClusterClock, Component, ControlNode, Policy, Settings};
use crate::firewall::entity::{FirewallRelease, FirewallRuleSet};
use crate::identity::entity::{BootTicket, CaRotation, Identity, JoinTicket, Token, User};
use crate::lease::entity::Lease;
use crate::machine::entity::{BmcOrder, EventLog, Machine};
use crate::network::entity::{Ip, Network};
use crate::node::entity::{NodeDocument, NodeRecord};
use crate::pool::entity::{HostPool, PoolHost, ProjectLabels};
use crate::rollout::entity::{Rollout, SiteRelease};
use crate::switch::entity::Switch;
use crate::tenancy::entity::{Invite, Project, Quota, Tenant};

/// The result of a command's apply function: its reply, or the refusal. A refusal leaves the tables
/// as they were.
pub type ApplyResult = Result<Reply, Error>;

/// The result of a check: `Ok` if the command may go on, or its refusal.
pub type CheckResult = Result<(), Error>;

macro_rules! replies {
    ($($name:ident $into:ident;)*) => {
        /// The reply to a command. The doc of each [`Op`](crate::Op) names its variant.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum Reply {
            /// Done, without an object.
            None,
            /// Machines.
            MachineIds(Vec<MachineId>),
            /// Serial numbers of certificates.
            Serials(Vec<String>),
            $(#[doc = stringify!($name)] $name(Arc<$name>),)*
        }

        impl Reply {
            $(
                /// The object of this kind.
                ///
                /// # Errors
                /// `Internal` if the reply is of another kind.
                pub fn $into(self) -> Result<Arc<$name>, Error> {
                    match self {
                        Self::$name(object) => Ok(object),
                        other => Err(other.unexpected(stringify!($name))),
                    }
                }
            )*
        }

        $(impl From<Arc<$name>> for Reply {
            fn from(object: Arc<$name>) -> Self {
                Self::$name(object)
            }
        })*
    };
}

replies! {
    Tenant tenant;
    Project project;
    Token token;
    Partition partition;
    Size size;
    SizeReservation size_reservation;
    SizeImageConstraint size_image_constraint;
    Image image;
    Layout layout;
    Network network;
    Ip ip;
    Machine machine;
    EventLog event_log;
    Switch switch;
    BmcOrder bmc_order;
    JoinTicket join_ticket;
    BootTicket boot_ticket;
    ControlNode control_node;
    Invite invite;
    Quota quota;
    Policy policy;
    Settings settings;
    Component component;
    User user;
    Identity identity;
    CaRotation ca_rotation;
    ClusterClock cluster_clock;
    FirewallRuleSet firewall_rule_set;
    FirewallRelease firewall_release;
    Rollout rollout;
    SiteRelease site_release;
    Lease lease;
    NodeAllocation node_allocation;
    HostPool host_pool;
    PoolHost pool_host;
    ProjectLabels project_labels;
    Claim claim;
    NodeRecord node_record;
    NodeDocument node_document;
}

impl Reply {
    fn unexpected(&self, wanted: &str) -> Error {
        let got = format!("{self:?}");
        let got = got.split(['(', ' ']).next().unwrap_or_default();
        Error::new(
            ErrorCode::Internal,
            format!("the answer is {got} where {wanted} was due"),
        )
    }
}
