//! Limits of site policies, per method.

use std::sync::LazyLock;

use proto_public::{Method, Scope, methods};

use crate::{Directory, Principal, PrincipalKind};

/// The service whose methods no policy judges: it must stay usable to remove a bad policy.
const POLICY_SERVICE: &str = "metalmesh.admin.v1.PolicyService";
/// Services that administrators need to regain access: identity, tokens, version and health.
const WAY_BACK: [&str; 5] = [
    "metalstack.api.v2.TokenService",
    "metalstack.api.v2.UserService",
    "metalstack.api.v2.MethodService",
    "metalstack.api.v2.VersionService",
    "metalstack.api.v2.HealthService",
];
/// Services that grant rights over the whole site, or hand out credentials.
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
/// Names of methods, in any service, that grant rights in a tenant or project.
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
/// Methods for tenants that show the contents of a machine's BMC.
const INSIDE: [&str; 1] = ["/metalstack.api.v2.MachineService/GetBMC"];

/// How far a policy can open a method beyond the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Widening {
    /// No policy can open the method.
    Never,
    /// A policy must name the method in full; a pattern is not enough.
    Named,
    /// A policy may name the method in full or by a pattern.
    Any,
}

/// The callers that an allowing rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Callers that may see the subject of the call.
    Known,
    /// Callers for which the subject does not exist.
    Foreign,
}

/// The limits that apply to policies about one method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MethodGuard {
    /// `true` if policies are asked about the method.
    pub(crate) judged: bool,
    /// `true` if no policy keeps platform administrators from the method.
    pub(crate) way_back: bool,
    widening: Widening,
}

/// The guards of all methods, by method index.
static GUARDS: LazyLock<Vec<MethodGuard>> = LazyLock::new(|| methods().iter().map(guard).collect());

fn guard(method: &Method) -> MethodGuard {
    let service = method.service.as_str();
    let is_never = KEYS.contains(&service)
        || MEMBERS.contains(&method.name.as_str())
        || matches!(method.scope, Scope::Infra(_) | Scope::Machine(_));
    let is_named =
        matches!(method.scope, Scope::Admin(_)) || INSIDE.contains(&method.path.as_str());
    MethodGuard {
        // Health probes and reflection are not methods of the contract. A policy that refused them
        // would make load balancers take the node out of service.
        judged: service != POLICY_SERVICE && !service.starts_with("grpc."),
        way_back: WAY_BACK.contains(&service),
        widening: match (is_never, is_named) {
            (true, _) => Widening::Never,
            (false, true) => Widening::Named,
            (false, false) => Widening::Any,
        },
    }
}

pub(crate) fn guard_of(method: &Method) -> MethodGuard {
    // Used only for an index out of range: no policy may touch a method that this program does not
    // know.
    let strict = MethodGuard {
        judged: false,
        way_back: true,
        widening: Widening::Never,
    };
    GUARDS.get(method.index).copied().unwrap_or(strict)
}

/// `true` if policies are asked about calls of this method.
pub fn is_judged(method: &Method) -> bool {
    guard_of(method).judged
}

/// `true` if no policy keeps administrators of the platform from this method.
pub fn is_way_back(method: &Method) -> bool {
    guard_of(method).way_back
}

/// How far a policy can open this method.
pub fn widening(method: &Method) -> Widening {
    guard_of(method).widening
}

/// `true` if the caller administers the platform: by an admin token, or by a role in the provider's
/// own tenant, with which it can order one.
pub fn is_of_platform(who: &Principal, directory: &dyn Directory) -> bool {
    who.kind == PrincipalKind::Api && who.rights.admin_role.is_some()
        || who.kind != PrincipalKind::Anonymous && directory.provider_role(&who.user).is_some()
}
