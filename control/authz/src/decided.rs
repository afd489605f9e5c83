//! The effect of site policies on a decision of the table.
//!
//! A policy refuses a call that the table permits, or permits a call that the table refuses, by a
//! named rule. This crate does not know how policies are written and evaluated: it asks a [`Judge`].
//!
//! No policy can:
//! - judge the policy service itself, by which a bad policy is removed, or the health and
//!   reflection services of gRPC ([`is_judged`](crate::is_judged));
//! - keep the platform's administrators from obtaining tokens
//!   ([`is_way_back`](crate::is_way_back));
//! - permit a call without a token;
//! - permit methods that grant rights: tokens, memberships, tickets, nodes, backups, and the methods
//!   of agents and machines ([`widening`]);
//! - open administrators' methods, BMCs or foreign objects by a pattern: it must name each method in
//!   full;
//! - reveal that an object exists: a refusal keeps the table's "not found".

use proto_public::Method;

use crate::guard::{guard_of, widening};
use crate::{Denied, Judge, Permit, Principal, PrincipalKind, Reach, Ruling, Widening};

/// The decision of the table about one call.
#[derive(Debug)]
pub struct Decided<'a> {
    /// The called method.
    pub method: &'static Method,
    /// The caller.
    pub who: &'a Principal,
    /// `true` if the caller administers the platform, see
    /// [`is_of_platform`](crate::is_of_platform).
    pub is_of_platform: bool,
    /// The value of the request's subject field.
    pub subject: Option<&'a str>,
    /// The table's decision.
    pub table: Result<Permit, Denied>,
}

impl Decided<'_> {
    /// Applies the site's policies: a refusing rule overrides a permitting one, and the table's refusal
    /// stands unless a rule lifts it.
    ///
    /// # Errors
    /// The table's refusal, or that of a policy.
    pub fn under(self, judge: &dyn Judge) -> Result<Permit, Denied> {
        let guard = guard_of(self.method);
        if !guard.judged {
            return self.table;
        }
        let is_exempt = guard.way_back && self.is_of_platform;
        match self.table {
            Ok(permit) if is_exempt => Ok(permit),
            Ok(permit) => refused(self.method, judge).map_or(Ok(permit), Err),
            Err(ref denied) => {
                let lifted = self.lifted(denied, judge).filter(|_| {
                    // A refusing rule keeps the table's refusal in place. The caller gets the
                    // table's words: a policy's message could reveal that the subject exists.
                    is_exempt || refused(self.method, judge).is_none()
                });
                match lifted {
                    Some(ruling) => {
                        let permit = Permit::new(self.method, self.who, self.subject);
                        Ok(permit.by_rule(&ruling.rule))
                    }
                    None => self.table,
                }
            }
        }
    }

    /// The rule that permits a call which the table refuses.
    fn lifted(&self, denied: &Denied, judge: &dyn Judge) -> Option<Ruling> {
        if widening(self.method) == Widening::Never || self.who.kind == PrincipalKind::Anonymous {
            return None;
        }
        let reach = match denied {
            Denied::Forbidden { .. } => Reach::Known,
            Denied::NotFound { .. } => Reach::Foreign,
            _ => return None,
        };
        judge.allow(reach).ok().flatten()
    }
}

/// The refusal by a policy's rule, or by a policy that cannot be evaluated.
fn refused(method: &'static Method, judge: &dyn Judge) -> Option<Denied> {
    match judge.deny() {
        Ok(ruling) => ruling.map(|ruling| Denied::ByRule {
            path: &method.path,
            rule: ruling.rule,
            message: ruling.message,
        }),
        Err(unjudged) => Some(Denied::Unjudged {
            path: &method.path,
            policy: unjudged.policy,
            reason: unjudged.reason,
        }),
    }
}
