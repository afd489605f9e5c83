//! Methods: which there are, and which of them a token may call on what.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use control_authz::{PrincipalKind, project_role, tenant_role};
use control_gate::Caller;
use control_gate::Looked;
use control_gate::StateDirectory;
use control_gate::refusal::{of_store, refused};
use control_state::{self as state, ErrorCode, Tables};
use proto_public::api::v2::method_service_server::MethodService;
use proto_public::api::v2::{
    MethodPermission, MethodServiceListRequest, MethodServiceListResponse,
    MethodServiceTokenScopedListRequest, MethodServiceTokenScopedListResponse, ProjectRole,
};
use proto_public::{Method, methods};
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

/// The subject of methods that concern no single object, or every object.
const ALL: &str = "*";

#[tonic::async_trait]
impl MethodService for Services {
    async fn list(
        &self,
        _request: Request<MethodServiceListRequest>,
    ) -> ApiResult<MethodServiceListResponse> {
        let methods = methods().iter().map(|method| method.path.clone()).collect();
        ok(MethodServiceListResponse { methods })
    }

    /// Decides each method for each subject in the caller's reach, as its call would be: by the
    /// table and the site's policies. What a policy makes of more than method, caller and subject
    /// shows when the call comes.
    async fn token_scoped_list(
        &self,
        request: Request<MethodServiceTokenScopedListRequest>,
    ) -> ApiResult<MethodServiceTokenScopedListResponse> {
        let caller = Caller::of(&request)?;
        if caller.user.is_empty() {
            return Err(refused(ErrorCode::Unauthenticated, "a token is needed"));
        }
        let reach = self.within_reach(&caller).await?;
        let everywhere = self.callable(&caller, None)?;
        let mut permissions = Vec::new();
        for subject in &reach {
            // One read for each subject: a token of many projects does not hold the state for long.
            let mut here = self.callable(&caller, Some(subject))?;
            here.retain(|path| !everywhere.contains(path));
            permissions.extend(permission(&subject.name, here));
        }
        permissions.extend(permission(ALL, everywhere));
        let rights = &caller.principal.rights;
        let is_users = caller.principal.kind == PrincipalKind::User;
        let roles = |field| {
            let of = reach.iter().filter(move |subject| subject.field == field);
            of.map(|subject| (subject.name.clone(), subject.role))
                .collect()
        };
        ok(MethodServiceTokenScopedListResponse {
            permissions,
            project_roles: match is_users {
                true => roles(PROJECT),
                false => numbers(&rights.project_roles, |role| *role as i32),
            },
            tenant_roles: match is_users {
                true => roles(TENANT),
                false => numbers(&rights.tenant_roles, |role| *role as i32),
            },
            machine_roles: numbers(&rights.machine_roles, |role| *role as i32),
            admin_role: rights.admin_role.map(Into::into),
            infra_role: rights.infra_role.map(Into::into),
        })
    }
}

/// A tenant, a project or a machine that a token may reach.
struct ReachableSubject {
    /// The field of requests that names it.
    field: &'static str,
    name: String,
    /// The user's role in it, by the contract's number; 0 in a machine.
    role: i32,
}

/// Fields by which requests name their subject.
const TENANT: &str = "login";
const PROJECT: &str = "project";
const MACHINE: &str = "uuid";

impl Services {
    /// The subjects within the caller's reach: memberships of its user, the project of a component,
    /// and subjects that the token names. Read after a majority was asked, so that the local reads
    /// that follow are at least as new.
    async fn within_reach(&self, caller: &Caller) -> Result<Vec<ReachableSubject>, Status> {
        let rights = &caller.principal.rights;
        let subject = |field, name, role| ReachableSubject { field, name, role };
        let provider = &self.gate.provider;
        let members = self.gate.read(caller, |tables| {
            let directory = StateDirectory { tables, provider };
            let tenants = tables.all::<state::Tenant>().filter_map(|tenant| {
                let role = tenant_role(&directory, &caller.user, tenant.login.as_str())?;
                Some(subject(TENANT, tenant.login.to_string(), role as i32))
            });
            let projects = tables.all::<state::Project>().filter_map(|project| {
                let id = project.id.to_string();
                let role = project_role(&directory, &caller.user, &id);
                let own = rights.component.as_ref() == Some(&id);
                let role = role.or_else(|| own.then_some(ProjectRole::Editor))?;
                Some(subject(PROJECT, id, role as i32))
            });
            Ok(tenants.chain(projects).collect::<Vec<_>>())
        });
        let mut reach = members.await?;
        let listed = rights.permissions.iter().map(|(name, _)| name);
        let machines = rights.machine_roles.keys().map(String::as_str);
        let machines: BTreeSet<&str> = listed.chain(machines).collect();
        let others = machines.into_iter().filter(|name| {
            let is_other = reach.iter().all(|subject| subject.name != *name);
            *name != ALL && !name.is_empty() && is_other
        });
        let others: Vec<ReachableSubject> = others
            .map(|name| subject(MACHINE, name.to_owned(), 0))
            .collect();
        reach.extend(others);
        Ok(reach)
    }

    /// The methods that the caller may call on a subject, by the state of this node. `None` means
    /// on every subject.
    fn callable(
        &self,
        caller: &Caller,
        subject: Option<&ReachableSubject>,
    ) -> Result<Vec<String>, Status> {
        let core = &self.gate;
        let is_about = |method: &Method| match subject {
            Some(subject) => method.scope.subject_field() == Some(subject.field),
            None => true,
        };
        let may = |tables: &Tables, path: &str| {
            let looked = Looked {
                policies: &core.policies,
                tables,
                provider: &core.provider,
                who: &caller.principal,
                address: caller.address,
                partition: caller.partition.as_deref(),
                now: core.now(),
            };
            let name = subject.map(|subject| subject.name.as_str());
            looked.decide(path, name, None).is_ok()
        };
        let callable = core.store.read_local(|tables| {
            let about = methods().iter().filter(|method| is_about(method));
            let callable = about.filter(|method| may(tables, &method.path));
            callable.map(|method| method.path.clone()).collect()
        });
        callable.map_err(of_store)
    }
}

fn numbers<R>(roles: &BTreeMap<String, R>, number: impl Fn(&R) -> i32) -> HashMap<String, i32> {
    roles
        .iter()
        .map(|(subject, role)| (subject.clone(), number(role)))
        .collect()
}

fn permission(subject: &str, methods: Vec<String>) -> Option<MethodPermission> {
    (!methods.is_empty()).then(|| MethodPermission {
        subject: subject.to_owned(),
        methods,
    })
}
