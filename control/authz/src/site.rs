//! What a site's own policies may do to a decision of the table, and what they never may.
//!
//! A policy refuses what the table permits, or permits, by a rule with a name, what the table
//! refuses. How policies are written and run is no business of this crate: it asks a [`Judge`].
//!
//! What no policy can do, whatever it says:
//! - judge the policy service itself, which is the way out of a bad policy, or the probes of
//!   gRPC ([`is_judged`]);
//! - keep the platform's administrators from obtaining tokens ([`is_way_back`]);
//! - let somebody in without a token;
//! - hand out rights: tokens, memberships, tickets, nodes, backups, what agents and machines may
//!   do ([`widening`]);
//! - reach further than it says in full: administrators' methods, BMCs and other people's objects
//!   are opened method by method, never by a pattern;
//! - tell that something exists: what the table calls not found stays not found.

use std::sync::LazyLock;

use proto_public::{Method, Scope, methods};

use crate::{Denied, Directory, Permit, Principal, PrincipalKind};

/// The service whose methods no policy judges.
const POLICY_SERVICE: &str = "metalmesh.admin.v1.PolicyService";
/// What administrators need in order to come back: who they are, and a token.
const WAY_BACK: [&str; 5] = [
    "metalstack.api.v2.TokenService",
    "metalstack.api.v2.UserService",
    "metalstack.api.v2.MethodService",
    "metalstack.api.v2.VersionService",
    "metalstack.api.v2.HealthService",
];
/// Services that hand out rights over the whole site, or credentials.
const KEYS: [&str; 10] = [
    POLICY_SERVICE,
    "metalmesh.admin.v1.BackupService",
    "metalmesh.admin.v1.CaService",
    "metalmesh.admin.v1.ClusterService",
    "metalmesh.admin.v1.IdentityService",
    "metalmesh.admin.v1.JoinService",
    "metalmesh.admin.v1.LoginUserService",
    "metalmesh.admin.v1.ProjectComponentService",
    "metalstack.admin.v2.TokenService",
    "metalstack.api.v2.TokenService",
];
/// Methods that hand out rights in a tenant or project, of whatever service.
const MEMBERS: [&str; 8] = [
    "AddMember",
    "UpdateMember",
    "RemoveMember",
    "Invite",
    "InviteAccept",
    "InviteDelete",
    "InviteGet",
    "InvitesList",
];
/// Methods for tenants that show what is inside a machine's BMC.
const INSIDE: [&str; 1] = ["/metalstack.api.v2.MachineService/GetBMC"];

/// How far a policy can open a method beyond the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Widening {
    /// Not at all.
    Never,
    /// When it names the method in full; a pattern does not do.
    Named,
    /// However it names the method.
    Any,
}

/// Whom an allowing rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Callers who see what the call is about.
    Known,
    /// Callers to whom it does not exist.
    Foreign,
}

/// A rule that decided a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// `policy/rule`.
    pub rule: String,
    /// What the policy wants the caller to be told; may be empty.
    pub message: String,
}

/// A policy that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unjudged {
    /// Its name.
    pub policy: String,
    /// Why, for the caller: nothing of the request.
    pub reason: String,
}

/// The site's policies about one call.
pub trait Judge {
    /// The first rule that refuses the call.
    ///
    /// # Errors
    /// When a policy could not be evaluated; the call is refused then.
    fn deny(&self) -> Result<Option<Ruling>, Unjudged>;

    /// The first rule that permits the call to these callers.
    ///
    /// # Errors
    /// When a policy could not be evaluated; the refusal of the table stands then.
    fn allow(&self, reach: Reach) -> Result<Option<Ruling>, Unjudged>;
}

#[derive(Debug, Clone, Copy)]
struct Guard {
    judged: bool,
    way_back: bool,
    widening: Widening,
}

static GUARDS: LazyLock<Vec<Guard>> = LazyLock::new(|| methods().iter().map(guard).collect());

fn guard(method: &Method) -> Guard {
    let service = method.service.as_str();
    let is_never = KEYS.contains(&service)
        || MEMBERS.contains(&method.name.as_str())
        || matches!(method.scope, Scope::Infra(_) | Scope::Machine(_));
    let is_named =
        matches!(method.scope, Scope::Admin(_)) || INSIDE.contains(&method.path.as_str());
    Guard {
        // Whoever asks whether a node lives, or what it serves, is no caller of the contract.
        judged: service != POLICY_SERVICE && !service.starts_with("grpc."),
        way_back: WAY_BACK.contains(&service),
        widening: match (is_never, is_named) {
            (true, _) => Widening::Never,
            (false, true) => Widening::Named,
            (false, false) => Widening::Any,
        },
    }
}

fn guard_of(method: &Method) -> Guard {
    let strict = Guard {
        judged: false,
        way_back: true,
        widening: Widening::Never,
    };
    GUARDS.get(method.index).copied().unwrap_or(strict)
}

/// Whether policies are asked about calls of this method at all.
pub fn is_judged(method: &Method) -> bool {
    guard_of(method).judged
}

/// Whether no policy keeps administrators of the platform from this method.
pub fn is_way_back(method: &Method) -> bool {
    guard_of(method).way_back
}

/// How far a policy can open a method.
pub fn widening(method: &Method) -> Widening {
    guard_of(method).widening
}

/// Whether somebody administers the platform: by an administrator's token, or by a role in the
/// provider's own tenant, with which one can be ordered.
pub fn is_of_platform(who: &Principal, directory: &dyn Directory) -> bool {
    who.kind == PrincipalKind::Api && who.rights.admin_role.is_some()
        || who.kind != PrincipalKind::Anonymous && directory.provider_role(&who.user).is_some()
}

/// The decision of the table about one call.
#[derive(Debug)]
pub struct Decided<'a> {
    /// Of what.
    pub method: &'static Method,
    /// Who calls.
    pub who: &'a Principal,
    /// Whether it administers the platform, see [`is_of_platform`].
    pub is_of_platform: bool,
    /// The value of the request's subject field.
    pub subject: Option<&'a str>,
    /// What the table says.
    pub table: Result<Permit, Denied>,
}

impl Decided<'_> {
    /// What comes of it with the site's policies: a refusing rule counts for more than a
    /// permitting one, and a refusal of the table stands unless a rule lifts it.
    ///
    /// # Errors
    /// The table's refusal, or a policy's.
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
                    // What the table refuses is refused in its words, not in those of a policy.
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

    /// The rule that permits what the table refuses.
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

/// The refusal of a policy, or of one that cannot say.
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
