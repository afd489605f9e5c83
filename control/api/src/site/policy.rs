//! Site policies: what is in force, and putting others in force.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use control_convert::policy::policy as shown;
use control_front::listing::listing;
use control_gate::Caller;
use control_gate::refusal::{of_state, refused};
use control_policy::{Checked, check};
use control_state::{self as state, ErrorCode, RemovePolicy, SetPolicy, StateError};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::policy_service_server::PolicyService;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

/// A policy, and what came of it at this node.
type PolicyRow = (Arc<state::Policy>, Option<mesh::PolicyUse>);

#[tonic::async_trait]
impl PolicyService for Services {
    async fn set(
        &self,
        request: Request<mesh::PolicyServiceSetRequest>,
    ) -> ApiResult<mesh::PolicyServiceSetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let (name, source) = (request.name.clone(), request.source.clone());
        // The policy's tests may run long: they must not block a thread that serves calls.
        let checked = tokio::task::spawn_blocking(move || check(&name, &source)).await;
        let checked = checked.map_err(|error| {
            tracing::error!(error = %error, "the check of a policy broke");
            refused(ErrorCode::Internal, "the policy could not be checked")
        })?;
        let Checked { compiled, .. } = checked.map_err(|invalid| {
            of_state(StateError::new(
                ErrorCode::PolicyInvalid,
                invalid.to_string(),
            ))
        })?;
        let tests = compiled.tests().map(str::to_owned).collect();
        let op = SetPolicy {
            name: request.name,
            source: request.source,
            methods: compiled.paths(),
            expected: request.expected_generation,
        };
        let reply = self.gate.propose(&caller, op).await?;
        let set = reply.policy().map_err(of_state)?;
        ok(mesh::PolicyServiceSetResponse {
            policy: Some(shown(&set)),
            tests,
        })
    }

    async fn remove(
        &self,
        request: Request<mesh::PolicyServiceRemoveRequest>,
    ) -> ApiResult<mesh::PolicyServiceRemoveResponse> {
        let caller = Caller::of(&request)?;
        let name = request.into_inner().name;
        let reply = self.gate.propose(&caller, RemovePolicy { name }).await?;
        let gone = reply.policy().map_err(of_state)?;
        ok(mesh::PolicyServiceRemoveResponse {
            policy: Some(shown(&gone)),
        })
    }

    async fn get(
        &self,
        request: Request<mesh::PolicyServiceGetRequest>,
    ) -> ApiResult<mesh::PolicyServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let name = &request.get_ref().name;
        let found = self.gate.read(&caller, |tables| {
            tables.require::<state::Policy>(name).cloned()
        });
        let found = found.await?;
        ok(mesh::PolicyServiceGetResponse {
            policy: Some(self.used(&found)),
        })
    }

    async fn list(
        &self,
        request: Request<mesh::PolicyServiceListRequest>,
    ) -> ApiResult<mesh::PolicyServiceListResponse> {
        let caller = Caller::of(&request)?;
        let all = self.gate.read(&caller, |tables| {
            let all = tables.all::<state::Policy>().cloned();
            Ok(all.collect::<Vec<_>>())
        });
        let all = all.await?.into_iter();
        let rows: Vec<PolicyRow> = all
            .map(|policy| (Arc::clone(&policy), self.uses(&policy)))
            .collect();
        listing(rows, |(policy, uses): &PolicyRow| mesh::Policy {
            r#use: uses.clone(),
            ..shown(policy)
        })
    }
}

impl Services {
    /// A policy with its counters of this node.
    fn used(&self, policy: &Arc<state::Policy>) -> mesh::Policy {
        mesh::Policy {
            r#use: self.uses(policy),
            ..shown(policy)
        }
    }

    fn uses(&self, policy: &Arc<state::Policy>) -> Option<mesh::PolicyUse> {
        self.gate.policies.member(policy).map(|member| {
            let counts = member.counts();
            mesh::PolicyUse {
                asked: counts.asked.load(Ordering::Relaxed),
                denied: counts.denied.load(Ordering::Relaxed),
                allowed: counts.allowed.load(Ordering::Relaxed),
                failed: counts.failed.load(Ordering::Relaxed),
                fault: member.fault().unwrap_or_default().to_owned(),
            }
        })
    }
}
