//! Makes messages of objects, once for all watches that show them.

use std::sync::{Arc, OnceLock};

use control_convert::firewall::RuleDetail;
use control_convert::machine_history::Viewer;
use control_convert::{
    audit, catalog, claim, component, firewall, invite, join, layout, lease, machine, network,
    node_allocation, policy, pool, quota, reservation, switch, task, tenancy, token,
};
use control_state::{
    AuditPhase, Change, EventLog, FirewallRuleSet, Invite, InviteTo, Kind, Machine, Network,
    Record, Tables, VpnMember,
};
use control_store::Changes;
use prost::Message;
use prost_types::Any;
use proto_public::api::v2;

use super::Scope;

/// Encoded messages of one change, made when the first watch needs them and shared by the others.
#[derive(Debug, Default)]
pub(super) struct ChangeMessages {
    /// The object as it is.
    now: OnceLock<Option<Any>>,
    /// The same for those who may use it but not look into it.
    outside: OnceLock<Option<Any>>,
    /// As it was.
    gone: OnceLock<Option<Any>>,
    /// As it was, for those who may use it but not look into it.
    gone_outside: OnceLock<Option<Any>>,
}

/// The places for the messages of one command's changes.
pub(super) fn places(changes: &Changes<Change>) -> Arc<Vec<ChangeMessages>> {
    changes.derived(|list| {
        list.iter()
            .map(|_| ChangeMessages::default())
            .collect::<Vec<_>>()
    })
}

impl ChangeMessages {
    /// The object as it is after the change.
    pub(super) fn now(&self, tables: &Tables, record: &Record, scope: &Scope) -> Option<Any> {
        let place = if is_outside(record, scope) {
            &self.outside
        } else {
            &self.now
        };
        place.get_or_init(|| object(tables, record, scope)).clone()
    }

    /// The object as it was before it went.
    pub(super) fn gone(&self, tables: &Tables, record: &Record, scope: &Scope) -> Option<Any> {
        let place = if is_outside(record, scope) {
            &self.gone_outside
        } else {
            &self.gone
        };
        let make = || match record {
            Record::Network(it) => message("api.v2.Network", &network::network(it, None)),
            Record::Machine(it) => {
                let viewer = viewer(scope);
                message("api.v2.Machine", &without_events(tables, it, viewer))
            }
            other => object(tables, other, &Scope::All),
        };
        place.get_or_init(make).clone()
    }

    /// A machine of which only a part changed. `None` if a later change of it will be sent anyway.
    pub(super) fn part(
        &self,
        tables: &Tables,
        machine: &Arc<Machine>,
        at: u64,
        scope: &Scope,
    ) -> Option<Any> {
        let viewer = viewer(scope);
        let place = match viewer {
            Viewer::Admin => &self.now,
            Viewer::Tenant => &self.outside,
        };
        let make = || {
            let is_later = machine_revision(tables, machine) > at;
            let shown = || machine::machine(tables, machine, viewer);
            (!is_later).then(|| message("api.v2.Machine", &shown()))?
        };
        place.get_or_init(make).clone()
    }
}

/// `true` for kinds that are shown as parts of machines: event logs and VPN members.
pub(super) fn is_part(kind: Kind) -> bool {
    matches!(kind, Kind::EventLog | Kind::VpnMember)
}

/// The revision of a machine or of one of its parts.
pub(super) fn machine_revision(tables: &Tables, machine: &Machine) -> u64 {
    let own = tables.revision_of::<Machine>(&machine.id);
    let events = tables.revision_of::<EventLog>(&machine.id);
    let allocation = machine.allocation.as_ref();
    let vpn = allocation.and_then(|allocation| tables.revision_of::<VpnMember>(&allocation.id));
    own.max(events).max(vpn).unwrap_or_default()
}

/// The viewer of a scope: administrators watch everything, tenants all other scopes.
fn viewer(scope: &Scope) -> Viewer {
    match scope {
        Scope::All => Viewer::Admin,
        Scope::Tenant(_) | Scope::Project(_) | Scope::Own(_) => Viewer::Tenant,
    }
}

/// `true` if the scope shows less of an object: a network without a project hides its usage, a
/// machine hides events from before its allocation.
fn is_outside(record: &Record, scope: &Scope) -> bool {
    match (record, scope) {
        (Record::Machine(_), scope) => viewer(scope) == Viewer::Tenant,
        (Record::Network(it), Scope::Project(_)) => it.project.is_none(),
        _ => false,
    }
}

/// The message of an object; `None` for kinds that clients cannot watch.
pub(super) fn object(tables: &Tables, record: &Record, scope: &Scope) -> Option<Any> {
    match record {
        Record::Tenant(it) => message("api.v2.Tenant", &tenancy::tenant(it)),
        Record::Project(it) => message("api.v2.Project", &tenancy::project(it)),
        Record::Token(it) => message("api.v2.Token", &token::token(it)),
        Record::Partition(it) => message("api.v2.Partition", &catalog::partition(it)),
        Record::Size(it) => message("api.v2.Size", &catalog::size(it)),
        Record::Image(it) => message("api.v2.Image", &catalog::image(it)),
        Record::Layout(it) => message("api.v2.FilesystemLayout", &layout::layout(it)),
        Record::Network(it) => network_message(tables, it, is_outside(record, scope)),
        Record::Ip(it) => message("api.v2.IP", &network::ip(it)),
        Record::Machine(it) => machine_message(tables, it, viewer(scope)),
        Record::Switch(it) => message("api.v2.Switch", &switch::switch(tables, it)),
        Record::BmcOrder(it) => message("admin.v2.TaskInfo", &task::task(it)),
        Record::AuditEntry(it) if it.phase == AuditPhase::Dropped => None,
        Record::AuditEntry(it) => message("api.v2.AuditTrace", &audit::trace(it)),
        Record::SizeReservation(it) => {
            message("api.v2.SizeReservation", &reservation::reservation(it))
        }
        Record::SizeImageConstraint(it) => message(
            "api.v2.SizeImageConstraint",
            &reservation::image_constraint(it),
        ),
        Record::Component(it) => message("api.v2.Component", &component::component(tables, it)),
        Record::JoinTicket(_)
        | Record::Policy(_)
        | Record::Quota(_)
        | Record::FirewallRuleSet(_)
        | Record::Lease(_)
        | Record::NodeAllocation(_)
        | Record::Claim(_)
        | Record::HostPool(_)
        | Record::PoolHost(_)
        | Record::ProjectLabels(_) => own_message(tables, record),
        Record::Invite(invite) => of_invite(tables, invite),
        Record::AuditAnchor(_)
        | Record::AuditExport(_)
        | Record::User(_)
        | Record::EventLog(_)
        | Record::BootTicket(_)
        | Record::Certificate(_)
        | Record::CaRecord(_)
        | Record::SigningKey(_)
        | Record::ControlNode(_)
        | Record::Idempotency(_)
        | Record::VpnMember(_)
        | Record::Identity(_)
        | Record::CaRotation(_)
        | Record::ClusterClock(_)
        | Record::CoolingNumber(_)
        | Record::PoolCursor(_)
        | Record::Settings(_)
        | Record::FirewallRuleHistory(_)
        | Record::FirewallStatus(_)
        | Record::FirewallRelease(_)
        | Record::Rollout(_)
        | Record::AgentProgram(_)
        | Record::SiteRelease(_)
        | Record::NodeRecord(_)
        | Record::NodeDocument(_) => None,
    }
}

fn machine_message(tables: &Tables, it: &Arc<Machine>, viewer: Viewer) -> Option<Any> {
    let newest = tables.get::<Machine>(&it.id);
    let is_newest = newest.is_some_and(|newest| Arc::ptr_eq(newest, it));
    let shown = if is_newest {
        machine::machine(tables, it, viewer)
    } else {
        without_events(tables, it, viewer)
    };
    message("api.v2.Machine", &shown)
}

fn of_invite(tables: &Tables, invite: &Invite) -> Option<Any> {
    match &invite.to {
        InviteTo::Tenant { .. } => message(
            "api.v2.TenantInvite",
            &invite::tenant_invite(tables, invite)?,
        ),
        InviteTo::Project { .. } => message(
            "api.v2.ProjectInvite",
            &invite::project_invite(tables, invite)?,
        ),
    }
}

/// The message of an object of our own packages; `None` for the other kinds.
fn own_message(tables: &Tables, record: &Record) -> Option<Any> {
    match record {
        Record::JoinTicket(it) => Some(any("metalmesh.admin.v1.JoinTicket", &join::ticket(it))),
        Record::Policy(it) => Some(any("metalmesh.admin.v1.Policy", &policy::policy(it))),
        Record::Quota(it) => Some(any("metalmesh.admin.v1.Quota", &quota::quota(tables, it))),
        Record::FirewallRuleSet(rules) => Some(rule_set(rules)),
        Record::Lease(lease) => Some(any("metalmesh.admin.v1.Lease", &lease::lease(lease))),
        Record::NodeAllocation(held) => {
            let shown = node_allocation::node_allocation(held);
            Some(any("metalmesh.admin.v1.NodeAllocation", &shown))
        }
        // As its project sees it. Which machine it has is told by the host, to administrators.
        Record::Claim(it) => Some(any("metalmesh.tenant.v1.Claim", &claim::claim(tables, it))),
        Record::HostPool(it) => Some(any("metalmesh.admin.v1.HostPool", &pool::pool(tables, it))),
        Record::PoolHost(it) => Some(any("metalmesh.admin.v1.PoolHost", &pool::host(tables, it))),
        Record::ProjectLabels(it) => {
            let shown = pool::project_labels(it);
            Some(any("metalmesh.admin.v1.ProjectPolicyLabels", &shown))
        }
        _ => None,
    }
}

/// A network, with its usage unless the watch sees it from outside.
fn network_message(tables: &Tables, of: &Network, is_outside: bool) -> Option<Any> {
    let inside = (!is_outside).then(|| network::Fullness::of_one(tables, of));
    message("api.v2.Network", &network::network(of, inside.as_ref()))
}

/// A set of firewall rules as in lists: contents may have megabytes.
fn rule_set(rules: &FirewallRuleSet) -> Any {
    let shown = firewall::rules(rules, RuleDetail::Summary);
    any("metalmesh.admin.v1.FirewallRules", &shown)
}

/// A machine that has changed since or is gone. Its events of today may be those of another
/// project, and so are not told with what it was.
fn without_events(tables: &Tables, machine: &Machine, viewer: Viewer) -> v2::Machine {
    v2::Machine {
        recent_provisioning_events: Some(v2::MachineRecentProvisioningEvents::default()),
        ..machine::machine(tables, machine, viewer)
    }
}

fn message(name: &str, message: &impl Message) -> Option<Any> {
    Some(any(&format!("metalstack.{name}"), message))
}

fn any(name: &str, message: &impl Message) -> Any {
    Any {
        type_url: format!("type.googleapis.com/{name}"),
        value: message.encode_to_vec(),
    }
}

/// The machine that shows a part that changed.
pub(super) fn machine_of_part<'a>(tables: &'a Tables, change: &Change) -> Option<&'a Arc<Machine>> {
    match change.record.as_ref()? {
        Record::EventLog(log) => tables.get::<Machine>(&log.machine),
        Record::VpnMember(member) => {
            let machine = tables.get::<Machine>(&member.machine)?;
            let holder = machine.allocation.as_ref()?;
            (holder.id == member.allocation).then_some(machine)
        }
        _ => None,
    }
}
