//! Site policies.

use control_state as state;
use proto_public::metalmesh::admin::v1::Policy;

use super::time;

/// A policy for the wire.
pub fn policy(policy: &state::Policy) -> Policy {
    Policy {
        name: policy.name.clone(),
        source: policy.source.clone(),
        methods: policy.methods.iter().cloned().collect(),
        generation: policy.generation,
        updated_by: policy.updated_by.clone(),
        updated_at: time(policy.updated_at),
        r#use: None,
    }
}
