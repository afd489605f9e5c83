//! Machines that others lease to a tenant.

use std::sync::Arc;

use control_state::{
    AllocateMachine, EndLease, ExtendLease, ExtensionLimit, FreeMachine, LeaseEnder, Machine,
    Phase, RequestLeaseTransfer, Tables, WantedNetwork, query,
};
use tests_support::objects::allocation_of;

use super::tenant::Tenant;
use crate::tenants::ids;
use crate::tenants::site::{self, TENANTS};

/// Machines that the tenant leases.
fn leased(tenant: &Tenant, tables: &Tables) -> Vec<Arc<Machine>> {
    let machines = query::tenured_machines(tables, tenant.project);
    let leased = machines.filter(|machine| machine.tenure.lessee == Some(tenant.project));
    leased.cloned().collect()
}

/// Does the tenant use the machine?
fn is_used(tenant: &Tenant, machine: &Machine) -> bool {
    let user = machine.allocation.as_ref().map(|used| used.project);
    user == Some(tenant.project) && !machine.is_leaving()
}

/// Uses a leased machine: as long as it is allowed, and in many cases longer.
pub(super) async fn use_leased(tenant: &mut Tenant, tables: &Tables) {
    let leased = leased(tenant, tables);
    let Some(machine) = tenant.person.random.pick(&leased).cloned() else {
        return;
    };
    let is_free = machine.allocation.is_none() && machine.phase == Phase::Waiting;
    match tenant.person.random.within(0..100) {
        _ if is_free => allocate(tenant, &machine).await,
        0..15 if is_used(tenant, &machine) => free(tenant, &machine).await,
        15..30 => extend(tenant, &machine).await,
        30..38 => request_transfer(tenant, &machine).await,
        38..43 => end(tenant, &machine).await,
        // It uses the machine until somebody takes it away.
        _ => {}
    }
}

/// Gives every leased machine back before its date.
pub(super) async fn give_back(tenant: &mut Tenant, tables: &Tables) {
    for machine in leased(tenant, tables) {
        end(tenant, &machine).await;
    }
}

async fn allocate(tenant: &mut Tenant, machine: &Machine) {
    let call = AllocateMachine {
        id: tenant.person.fresh.allocation(),
        project: tenant.project,
        machine: Some(machine.id),
        partition: None,
        size: None,
        networks: vec![WantedNetwork {
            network: site::network_of(tenant.number),
            ips: Vec::new(),
        }],
        ..allocation_of(0)
    };
    tenant.person.call(call).await;
}

async fn free(tenant: &mut Tenant, machine: &Machine) {
    let call = FreeMachine {
        id: machine.id,
        project: Some(tenant.project),
    };
    tenant.person.call(call).await;
}

async fn extend(tenant: &mut Tenant, machine: &Machine) {
    let by_ms = tenant.person.random.within(30_000..240_000);
    let call = ExtendLease {
        machine: machine.id,
        project: tenant.project,
        lease: None,
        expires_at: Some(tenant.person.now().plus_ms(by_ms)),
        limit: ExtensionLimit::Keep,
    };
    tenant.person.call(call).await;
}

async fn request_transfer(tenant: &mut Tenant, machine: &Machine) {
    let other = tenant.person.random.within(1..TENANTS + 1);
    let call = RequestLeaseTransfer {
        machine: machine.id,
        project: tenant.project,
        lease: None,
        to: Some(ids::project(other)),
    };
    tenant.person.call(call).await;
}

async fn end(tenant: &mut Tenant, machine: &Machine) {
    let call = EndLease {
        machine: machine.id,
        by: LeaseEnder::Project(tenant.project),
        lease: None,
        reason: String::new(),
    };
    tenant.person.call(call).await;
}
