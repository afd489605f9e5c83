//! The proof that an operation was authorised.

use std::sync::Arc;

use proto_public::Method;

use crate::{AuditedCall, FacadeMethod, Principal};

/// The proof that an operation was authorised. Only `authorise`, a site policy's rule,
/// `permit_facade` and [`Permit::system`] create one. The store takes one with each write and records
/// the permitted call in the same log entry as its change.
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

/// The originator of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A caller without a token.
    Anonymous,
    /// The bearer of a token.
    User {
        /// Login.
        user: Arc<str>,
        /// Id of the token, not its secret.
        token: Arc<str>,
    },
    /// The control plane itself.
    System(SystemActor),
}

/// The parts of the control plane that write without a call. The enum is closed on purpose: a new
/// variant shows up in review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SystemActor {
    /// Writes what authenticated agents report over the mesh.
    Gateway,
    /// Reconciles: life cycles, BMC orders, releases.
    Reconcile,
    /// Issues, renews and revokes certificates and tickets.
    Pki,
    /// Sets up a new cluster.
    Bootstrap,
    /// Writes the audit trail and the position of its export.
    Audit,
    /// Creates the tokens of users who log in.
    Login,
    /// Records the last use of tokens.
    Gate,
}

impl SystemActor {
    /// Every variant.
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
    /// A permit for a write of the control plane itself. The store decides which commands it covers.
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
        Self::of_call(&method.path, method.audited, who, subject)
    }

    pub(crate) fn of_facade(
        method: &'static FacadeMethod,
        who: &Principal,
        subject: Option<&str>,
    ) -> Self {
        Self::of_call(method.path, method.audited, who, subject)
    }

    fn of_call(path: &'static str, audited: bool, who: &Principal, subject: Option<&str>) -> Self {
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
            path: Some(path),
            audited,
            subject: subject.map(Into::into),
            rule: None,
            call: None,
            trial: false,
        }
    }

    /// The same permit, given by a site policy's rule instead of the table.
    pub(crate) fn by_rule(self, rule: &str) -> Self {
        Self {
            rule: Some(rule.into()),
            ..self
        }
    }

    /// The same permit, bound to this call: the store writes the call's record with the change.
    #[must_use]
    pub fn for_call(self, call: Arc<AuditedCall>) -> Self {
        Self {
            call: Some(call),
            ..self
        }
    }

    /// The same permit for a dry run, which computes the change without writing it.
    #[must_use]
    pub fn for_trial(self) -> Self {
        Self {
            trial: true,
            ..self
        }
    }

    /// `true` for a dry run. The store refuses to write with it.
    pub fn is_trial(&self) -> bool {
        self.trial
    }

    /// The record of the permitted call. `None` means that the contract does not audit it.
    pub fn call(&self) -> Option<&Arc<AuditedCall>> {
        self.call.as_ref()
    }

    /// The site policy rule that gave the permit, `policy/rule`. `None` means the table gave it.
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_deref()
    }

    /// The originator of the operation.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Path of the called method. `None` means the control plane itself acts.
    pub fn path(&self) -> Option<&'static str> {
        self.path
    }

    /// `true` if the contract wants this call in the audit trail.
    pub fn audited(&self) -> bool {
        self.audited
    }

    /// The tenant, project or machine for which the call was permitted.
    pub fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }
}
