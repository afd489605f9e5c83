//! The proof that somebody may do what is about to be done.

use std::sync::Arc;

use proto_public::Method;

use crate::{AuditedCall, Principal};

/// Made only by `authorise` after a yes, or by [`Permit::system`]. The store asks for one with
/// each write, and records the call that it was given for together with what the call changes.
#[derive(Debug, Clone)]
pub struct Permit {
    actor: Actor,
    path: Option<&'static str>,
    audited: bool,
    subject: Option<Box<str>>,
    rule: Option<Box<str>>,
    call: Option<Arc<AuditedCall>>,
    trial: bool,
}

/// Who acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// Somebody without a token.
    Anonymous,
    /// The bearer of a token.
    User {
        /// Login.
        user: Arc<str>,
        /// Id of the token, not its secret.
        token: Arc<str>,
    },
    /// We ourselves.
    System(SystemActor),
}

/// The parts of the control plane that write without being asked by a caller. Closed on purpose:
/// a new one is a decision that shows up in review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SystemActor {
    /// Writes what authenticated agents report over the mesh.
    Gateway,
    /// Carries intent out: life cycles, orders, releases.
    Reconcile,
    /// Issues, renews and revokes certificates and tickets.
    Pki,
    /// Sets a fresh cluster up.
    Bootstrap,
    /// Writes the audit trail, and how far it was sent elsewhere.
    Audit,
    /// Makes the tokens of those who log in.
    Login,
    /// Writes down when tokens were used.
    Gate,
}

impl SystemActor {
    /// Every part of the system that writes.
    pub const ALL: &'static [Self] = &[
        Self::Gateway,
        Self::Reconcile,
        Self::Pki,
        Self::Bootstrap,
        Self::Audit,
        Self::Login,
        Self::Gate,
    ];
}

impl Permit {
    /// For a write that the system makes by itself; what it covers is the store's to say.
    pub fn system(actor: SystemActor) -> Self {
        Self {
            actor: Actor::System(actor),
            path: None,
            audited: false,
            subject: None,
            rule: None,
            call: None,
            trial: false,
        }
    }

    pub(crate) fn new(method: &'static Method, who: &Principal, subject: Option<&str>) -> Self {
        let actor = if who.user.is_empty() {
            Actor::Anonymous
        } else {
            Actor::User {
                user: Arc::clone(&who.user),
                token: Arc::clone(&who.token),
            }
        };
        Self {
            actor,
            path: Some(&method.path),
            audited: method.audited,
            subject: subject.map(Into::into),
            rule: None,
            call: None,
            trial: false,
        }
    }

    /// The same, given by a rule of a site policy and not by the table.
    pub(crate) fn by_rule(self, rule: &str) -> Self {
        Self {
            rule: Some(rule.into()),
            ..self
        }
    }

    /// The same for what this call changes: its record goes with the change.
    #[must_use]
    pub fn for_call(self, call: Arc<AuditedCall>) -> Self {
        Self {
            call: Some(call),
            ..self
        }
    }

    /// The same for a trial: what would be changed is found out, and nothing is.
    #[must_use]
    pub fn for_trial(self) -> Self {
        Self {
            trial: true,
            ..self
        }
    }

    /// Whether nothing may be changed with it; the store takes none of these.
    pub fn is_trial(&self) -> bool {
        self.trial
    }

    /// The call that it was given for, where the contract wants it recorded.
    pub fn call(&self) -> Option<&Arc<AuditedCall>> {
        self.call.as_ref()
    }

    /// The rule of a site policy that gave it, `policy/rule`; none where the table did.
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_deref()
    }

    /// Who acts.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// The method that was called; none for the system.
    pub fn path(&self) -> Option<&'static str> {
        self.path
    }

    /// Whether the contract wants this call in the audit trail.
    pub fn audited(&self) -> bool {
        self.audited
    }

    /// The tenant, project or machine for which the call was permitted.
    pub fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }
}
