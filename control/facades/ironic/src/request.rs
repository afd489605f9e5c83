//! A call of an authenticated caller, as handlers see it.

use std::sync::Arc;

use control_gate::{FacadeCall, ServiceContext};
use control_oslo::PolicyTarget;
use control_state::{NodeContent, Op, Reply, SetNode, StateError, Tables};
use proto_types::Timestamp;
use serde_json::Value;

use crate::access::{AccessPolicy, FacadeCaller, SeenNode, seen_node};
use crate::error::IronicError;
use crate::version::ApiVersion;

/// Parameters of a path, or of a query: names and values in the order of the request.
pub(crate) type Parameters = Vec<(String, String)>;

/// A call.
#[derive(Debug)]
pub(crate) struct IronicCall<'a> {
    /// The state and its time.
    pub(crate) core: &'a Arc<ServiceContext>,
    /// The policy. Handlers ask it through [`IronicCall::require`] and [`IronicCall::permits`].
    pub(crate) policy: &'a AccessPolicy,
    /// The caller.
    pub(crate) caller: &'a FacadeCaller,
    /// The call as the gate records it.
    pub(crate) gate: &'a FacadeCall,
    /// The microversion.
    pub(crate) version: ApiVersion,
    /// Address of the facade without a slash at its end, for links.
    pub(crate) base: &'a str,
    /// Parameters of the path.
    pub(crate) path: &'a Parameters,
    /// Parameters of the query.
    pub(crate) query: &'a Parameters,
    /// The body; `Null` if there is none.
    pub(crate) body: &'a Value,
}

impl<'a> IronicCall<'a> {
    /// A parameter of the path. The route names it, so that an absent one is empty.
    pub(crate) fn parameter(&self, name: &str) -> &'a str {
        value(self.path, name).unwrap_or_default()
    }

    /// A parameter of the query.
    pub(crate) fn asked(&self, name: &str) -> Option<&'a str> {
        value(self.query, name)
    }

    /// The time to compare with times in the state.
    pub(crate) fn now(&self) -> Timestamp {
        self.core.now()
    }

    /// Linearizable read of anything that depends on no rule, or whose rules `read` asks itself.
    ///
    /// # Errors
    /// The refusal of the closure, or 503.
    pub(crate) async fn read<T>(
        &self,
        read: impl FnOnce(&Tables) -> Result<T, IronicError>,
    ) -> Result<T, IronicError> {
        let found = self.gate.read(|tables| Ok::<_, StateError>(read(tables)));
        found.await?
    }

    /// The node that the path's parameter `node` names, if the caller sees it.
    ///
    /// # Errors
    /// 404 for one that it does not see, as for one that does not exist.
    pub(crate) async fn node(&self) -> Result<SeenNode, IronicError> {
        self.node_of(self.parameter("node")).await
    }

    /// The node of this id or name, if the caller sees it.
    ///
    /// # Errors
    /// As [`IronicCall::node`].
    pub(crate) async fn node_of(&self, ident: &str) -> Result<SeenNode, IronicError> {
        self.read(|tables| seen_node(tables, self.policy, self.caller, ident))
            .await
    }

    /// The node of the path, if the caller sees it and the rule permits the call.
    ///
    /// # Errors
    /// As [`IronicCall::node`]; 403 if the rule refuses.
    pub(crate) async fn node_for(&self, rule: &str) -> Result<SeenNode, IronicError> {
        let node = self.node().await?;
        self.require(rule, &node.target())?;
        Ok(node)
    }

    /// `true` if the rule permits the call on the object.
    pub(crate) fn permits(&self, rule: &str, target: &PolicyTarget<'_>) -> bool {
        self.policy.permits(rule, self.caller, target)
    }

    /// Asks the rule.
    ///
    /// # Errors
    /// 403 if it refuses.
    pub(crate) fn require(&self, rule: &str, target: &PolicyTarget<'_>) -> Result<(), IronicError> {
        match self.permits(rule, target) {
            true => Ok(()),
            false => Err(IronicError::forbidden(rule)),
        }
    }

    /// The change of a node's record in the caller's name, locked by what the caller read.
    pub(crate) fn node_change(&self, node: &SeenNode, content: NodeContent) -> SetNode {
        SetNode {
            machine: node.id(),
            project: self.caller.writer(),
            expected: node.generation(),
            content,
        }
    }

    /// Proposes a change that a rule permitted before.
    ///
    /// # Errors
    /// The state's refusal, or 503.
    pub(crate) async fn propose(&self, op: impl Into<Op>) -> Result<Reply, IronicError> {
        Ok(self.gate.propose(op).await?)
    }

    /// An absolute address of the API, of a path below `/v1` that begins with a slash.
    pub(crate) fn link(&self, path: &str) -> String {
        format!("{}/v1{path}", self.base)
    }
}

fn value<'a>(all: &'a Parameters, name: &str) -> Option<&'a str> {
    let found = all.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}
