//! Tenants: changes that owners and administrators have in common.

use std::sync::Arc;

use control_convert::{parse, required, tenancy};
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::{self as state, RemoveTenantMember, SetTenantMember};
use proto_public::api::v2::{self as api};
use proto_types::TenantId;
use tonic::Status;

use crate::services::Services;

impl Services {
    pub(crate) async fn tenant_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<Arc<state::Tenant>, Status> {
        self.gate
            .propose(caller, op)
            .await?
            .tenant()
            .map_err(of_state)
    }

    /// Removes a member, and returns the membership that it had.
    pub(crate) async fn drop_member(
        &self,
        caller: &Caller,
        login: TenantId,
        member: TenantId,
    ) -> Result<Option<api::TenantMember>, Status> {
        let was = self.gate.read(caller, |tables| {
            let tenant = tables.require::<state::Tenant>(&login)?;
            let found = tenant.members.get(&member);
            Ok(found.map(|found| tenancy::tenant_member(tables, tenant, &member, found)))
        });
        let was = was.await?;
        self.tenant_reply(caller, RemoveTenantMember { login, member })
            .await?;
        Ok(was)
    }

    pub(crate) async fn set_member(
        &self,
        caller: &Caller,
        login: &str,
        member: &str,
        role: i32,
        is_new: bool,
    ) -> Result<api::TenantMember, Status> {
        let id: TenantId = parse("member", member)?;
        let role = tenancy::from_tenant_role(role);
        let op = SetTenantMember {
            login: parse("login", login)?,
            member: id.clone(),
            role: required("role", role)?,
            must_be_new: Some(is_new),
        };
        let tenant = self.tenant_reply(caller, op).await?;
        let made = self.gate.read(caller, |tables| {
            let member = tenant.members.get(&id);
            Ok(member.map(|member| tenancy::tenant_member(tables, &tenant, &id, member)))
        });
        required("member", made.await?)
    }
}
