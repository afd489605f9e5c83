//! What every service works with: the store, the token issuer, the audit trail, the policies.

use control_authz::Permit;
use control_front::traces;
use control_state::{
    Command, ErrorCode, Op, Reply, StateError, TRACE_LEVEL, Tables, Token, TokenType, bounds,
    feature_level,
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

/// The parts that all services of the public API share.
#[derive(Debug)]
pub struct ServiceContext {
    /// The replicated state.
    pub store: Store,
    /// Signs and checks tokens.
    pub issuer: Issuer,
    /// Where audit records go.
    pub audit: AuditTrail,
    /// Login of the provider's own tenant, from which admin rights come.
    pub provider: String,
    /// The site's own rules beside the contract's table.
    pub policies: Policies,
    /// How many calls each token may make.
    pub rates: Rates,
    /// Where uses of tokens are noted.
    pub uses: Uses,
}

impl ServiceContext {
    /// Reads a state that has every write that was acknowledged before the call, for its caller.
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

    /// Reads a state that has every write that was acknowledged before now.
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

    /// Has a caller's change applied.
    ///
    /// # Errors
    /// The state's refusal, or `unavailable`.
    pub async fn propose(&self, caller: &Caller, op: impl Into<Op>) -> Result<Reply, Status> {
        caller.freshness.take();
        self.propose_as(&caller.permit, &caller.user, op).await
    }

    /// Has a change applied under another permit.
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
        bounds::clip_reports(&mut op);
        let mut command = Command::new(self.store.now(), actor, op);
        if let Some(trace) = traces::current().filter(|_| self.knows_traces()) {
            command = command.traced(trace.to_string());
        }
        if permit.is_trial() {
            check_covers(permit, &command.op).map_err(refusal::of_state)?;
            return self.attempt(&command).await;
        }
        self.store
            .propose(permit, &command)
            .await
            .map_err(refusal::of_propose)
    }

    /// Whether all nodes keep the traces of commands.
    fn knows_traces(&self) -> bool {
        let level = self.store.read_local(feature_level);
        level.is_ok_and(|level| level >= TRACE_LEVEL)
    }

    /// Carries out a caller's change and takes it back at once, to learn of a refusal before work
    /// that takes long.
    ///
    /// # Errors
    /// As [`ServiceContext::propose`].
    pub async fn check(&self, caller: &Caller, op: impl Into<Op>) -> Result<(), Status> {
        let command = Command::new(self.store.now(), &caller.user, op);
        self.attempt(&command).await.map(drop)
    }

    /// The answer that a change would get: it is carried out and taken back at once.
    ///
    /// # Errors
    /// As [`ServiceContext::propose`].
    pub async fn attempt(&self, command: &Command) -> Result<Reply, Status> {
        // The read brings this node up to date.
        self.read_latest(|_| Ok(())).await?;
        let tried = self.store.attempt_local(command);
        tried.map_err(refusal::of_store)?.map_err(refusal::of_state)
    }

    /// The signed text of a token that was made.
    ///
    /// # Errors
    /// `internal` when it cannot be signed.
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
