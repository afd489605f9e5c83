//! Shared context of the services: store, token issuer, audit trail, policies, rate limits.

use control_authz::Permit;
use control_front::traces;
use control_state::{
    Command, ErrorCode, Op, Reply, StateError, Tables, Token, TokenType, clip_reports,
};
use control_store::{AuditTrail, Store, check_covers};
use proto_types::Timestamp;
use tonic::Status;

use crate::caller::Caller;
use crate::policy::Policies;
use crate::rate::Rates;
use crate::refusal;
use crate::token::{Issuer, TokenKind};
use crate::uses::Uses;

/// Dependencies of every service of the public API.
#[derive(Debug)]
pub struct ServiceContext {
    /// The replicated state.
    pub store: Store,
    /// Signs and checks tokens.
    pub issuer: Issuer,
    /// Where audit records go.
    pub audit: AuditTrail,
    /// Login of the provider's tenant; membership there gives admin rights.
    pub provider: String,
    /// Site policies, which judge calls after the contract's role table.
    pub policies: Policies,
    /// Rate limits per token.
    pub rates: Rates,
    /// Records when tokens were last used.
    pub uses: Uses,
}

impl ServiceContext {
    /// Linearizable read: sees every write acknowledged before the call. The first read of a call
    /// reuses the read index that the gate already waited for, and saves a round trip.
    ///
    /// # Errors
    /// The refusal of the closure, or `unavailable`.
    pub async fn read<T>(
        &self,
        caller: &Caller,
        read: impl FnOnce(&Tables) -> Result<T, StateError>,
    ) -> Result<T, Status> {
        if !caller.freshness.take() {
            return self.read_latest(read).await;
        }
        let read = self.store.read_local(read);
        read.map_err(refusal::of_store)?.map_err(refusal::of_state)
    }

    /// Linearizable read with its own read index: sees every write acknowledged before now.
    ///
    /// # Errors
    /// As [`ServiceContext::read`].
    pub async fn read_latest<T>(
        &self,
        read: impl FnOnce(&Tables) -> Result<T, StateError>,
    ) -> Result<T, Status> {
        let read = self.store.read(read).await;
        read.map_err(refusal::of_store)?.map_err(refusal::of_state)
    }

    /// Proposes a change for the caller, and returns its result once it is applied.
    ///
    /// # Errors
    /// The state's refusal, or `unavailable`.
    pub async fn propose(&self, caller: &Caller, op: impl Into<Op>) -> Result<Reply, Status> {
        // This node may not have applied the write when the call reads next, so that read needs its
        // own read index.
        caller.freshness.take();
        self.propose_as(&caller.permit, &caller.user, op).await
    }

    /// Proposes a change under another permit.
    ///
    /// # Errors
    /// As [`ServiceContext::propose`].
    pub async fn propose_as(
        &self,
        permit: &Permit,
        actor: &str,
        op: impl Into<Op>,
    ) -> Result<Reply, Status> {
        let mut op = op.into();
        clip_reports(&mut op);
        let mut command = Command::new(self.store.now(), actor, op);
        if let Some(trace) = traces::current() {
            command = command.traced(trace.to_string());
        }
        // The store checks the permit of a real write. A dry run never reaches that check.
        if permit.is_trial() {
            check_covers(permit, &command.op).map_err(refusal::of_state)?;
            return self.attempt(&command).await;
        }
        self.store
            .propose(permit, &command)
            .await
            .map_err(refusal::of_propose)
    }

    /// Dry-runs a change, so that a refusal is known before long work begins.
    ///
    /// # Errors
    /// As [`ServiceContext::propose`].
    pub async fn check(&self, caller: &Caller, op: impl Into<Op>) -> Result<(), Status> {
        let command = Command::new(self.store.now(), &caller.user, op);
        self.attempt(&command).await.map(drop)
    }

    /// Dry-runs a change: applies it to the local state, takes it back at once and
    /// returns the reply.
    ///
    /// # Errors
    /// As [`ServiceContext::propose`].
    pub async fn attempt(&self, command: &Command) -> Result<Reply, Status> {
        // A local attempt on a stale state could refuse what the leader would accept.
        self.read_latest(|_| Ok(())).await?;
        let tried = self.store.attempt_local(command);
        tried.map_err(refusal::of_store)?.map_err(refusal::of_state)
    }

    /// The signed text of a stored token.
    ///
    /// # Errors
    /// `internal` if signing fails.
    pub fn sign(&self, token: &Token) -> Result<String, Status> {
        let kind = match token.token_type {
            TokenType::Api => TokenKind::Api,
            TokenType::User => TokenKind::User,
        };
        let (issued, expires) = (token.issued_at.ms() / 1000, token.expires.ms() / 1000);
        self.issuer
            .sign(kind, &token.user, &token.id.to_string(), issued, expires)
            .map_err(|error| {
                tracing::error!(error = %error, "a token could not be signed");
                refusal::refused(ErrorCode::Internal, "the token could not be signed")
            })
    }

    /// The time to compare with times in the state.
    pub fn now(&self) -> Timestamp {
        self.store.now()
    }
}
