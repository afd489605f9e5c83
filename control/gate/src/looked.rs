//! Authorisation that is repeated during a stream or a long call.

use std::net::IpAddr;

use control_authz::{Denied, Permit, Principal, authorise_method, is_of_platform};
use control_policy::Relation;
use control_state::Tables;
use proto_types::Timestamp;

use crate::directory::StateDirectory;
use crate::policy::Policies;
use crate::policy_context::{PolicyContext, PolicyInput};

/// Inputs of an authorisation that is repeated, for streams and long calls.
#[derive(Debug, Clone, Copy)]
pub struct Looked<'a> {
    /// The policies of the node.
    pub policies: &'a Policies,
    /// The state.
    pub tables: &'a Tables,
    /// Login of the provider's own tenant.
    pub provider: &'a str,
    /// The caller.
    pub who: &'a Principal,
    /// Source address of the call.
    pub address: Option<IpAddr>,
    /// The partition that the token is bound to.
    pub partition: Option<&'a str>,
    /// Time of the decision.
    pub now: Timestamp,
}

impl Looked<'_> {
    /// Decides by role table and policies. Policies see `request`.
    ///
    /// # Errors
    /// The refusal of the table or of a policy.
    pub fn decide(
        &self,
        path: &str,
        subject: Option<&str>,
        request: Option<&serde_json::Value>,
    ) -> Result<Permit, Denied> {
        let directory = StateDirectory {
            tables: self.tables,
            provider: self.provider,
        };
        let method = proto_public::method(path);
        let method = method.ok_or_else(|| Denied::UnknownMethod(path.to_owned()))?;
        let table = authorise_method(method, self.who, &directory, subject);
        let Some(site) = self.policies.now(self.tables, method) else {
            return table;
        };
        let judged = PolicyContext {
            site,
            relation: Relation::of(method, self.who, &directory, subject),
            resource: None,
            is_of_platform: is_of_platform(self.who, &directory),
        };
        // A read beside the stream's own method has no request of its own. Policies get one that
        // names the subject, as the read would.
        let plain = subject
            .zip(method.scope.subject_field())
            .map(|(subject, field)| serde_json::json!({ field: subject }));
        judged.decide(
            &PolicyInput {
                method,
                who: self.who,
                subject,
                address: self.address,
                partition: self.partition,
                request: request.or(plain.as_ref()),
                now: self.now,
            },
            table,
        )
    }
}
