//! Refusals of calls: the reason, and the part of it that the caller may learn.

use proto_errors::{Error, ErrorCode};
use proto_public::{Method, Scope};

/// The reason why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The contract has no method with that path.
    #[error("method {0} is unknown")]
    UnknownMethod(String),
    /// The method needs a token and the caller has none.
    #[error("a token is needed")]
    Unauthenticated,
    /// The caller may not know whether the subject exists.
    #[error("{kind} {subject:?} not found")]
    NotFound {
        /// `tenant`, `project` or `machine`.
        kind: &'static str,
        /// The subject as the request named it.
        subject: String,
    },
    /// The caller may see the subject (or the method has none) but has no role that the method
    /// lists.
    #[error("{path} is not allowed: {needs}")]
    Forbidden {
        /// The method's path.
        path: &'static str,
        /// The roles that would be sufficient.
        needs: String,
    },
    /// The table permits the call and a rule of a site policy refuses it.
    #[error("{path} is not allowed by rule {rule} of this site{}", said(message))]
    ByRule {
        /// The method's path.
        path: &'static str,
        /// `policy/rule`.
        rule: String,
        /// The policy's message for the caller. Empty means none.
        message: String,
    },
    /// A site policy could not be evaluated. The call is refused, because the policy might refuse it.
    #[error("{path} is refused: policy {policy:?} of this site cannot be evaluated: {reason}")]
    Unjudged {
        /// The method's path.
        path: &'static str,
        /// The policy's name.
        policy: String,
        /// The cause, without values of the request.
        reason: String,
    },
}

fn said(message: &str) -> String {
    match message {
        "" => String::new(),
        message => format!(": {message}"),
    }
}

impl Denied {
    /// The rule of a site policy that refused, `policy/rule`, or the name of the policy that could
    /// not be evaluated. `None` means that the table refused.
    pub fn rule(&self) -> Option<&str> {
        match self {
            Self::ByRule { rule, .. } => Some(rule),
            Self::Unjudged { policy, .. } => Some(policy),
            _ => None,
        }
    }

    /// Short name of the reason, a metric label from a fixed set.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::UnknownMethod(_) => "unknown_method",
            Self::Unauthenticated => "no_token",
            Self::NotFound { .. } => "not_visible",
            Self::Forbidden { .. } => "role",
            Self::ByRule { .. } => "policy",
            Self::Unjudged { .. } => "policy_failed",
        }
    }

    pub(crate) fn not_found(kind: &'static str, subject: &str) -> Self {
        Self::NotFound {
            kind,
            subject: subject.to_owned(),
        }
    }

    pub(crate) fn forbidden(method: &'static Method) -> Self {
        let needs = match &method.scope {
            Scope::Public | Scope::Own => "the token does not list it".to_owned(),
            Scope::Tenant(r) => format!("needs a tenant role of {}", list(r, "TENANT_ROLE_")),
            Scope::Project(r) => format!("needs a project role of {}", list(r, "PROJECT_ROLE_")),
            Scope::Machine(_) => "it is for machines".to_owned(),
            Scope::Admin(r) => format!("needs an admin role of {}", list(r, "ADMIN_ROLE_")),
            Scope::Infra(_) => "it is for agents".to_owned(),
        };
        Self::Forbidden {
            path: &method.path,
            needs,
        }
    }
}

trait RoleName: Copy {
    fn name(self) -> &'static str;
}

macro_rules! role_name {
    ($($role:ident),*) => {$(
        impl RoleName for proto_public::api::v2::$role {
            fn name(self) -> &'static str {
                self.as_str_name()
            }
        }
    )*};
}
role_name!(TenantRole, ProjectRole, AdminRole);

fn list<R: RoleName>(roles: &[R], prefix: &str) -> String {
    let names: Vec<String> = roles
        .iter()
        .map(|r| r.name().trim_start_matches(prefix).to_ascii_lowercase())
        .collect();
    names.join(" or ")
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        let code = match &denied {
            Denied::UnknownMethod(_) => ErrorCode::Unimplemented,
            // Published servers answer a missing token with this code and a bad token with
            // `unauthenticated`; clients tell the two apart by it.
            Denied::Unauthenticated => ErrorCode::NoToken,
            Denied::NotFound { .. } => ErrorCode::NotFound,
            Denied::Forbidden { .. } => ErrorCode::PermissionDenied,
            Denied::ByRule { .. } => ErrorCode::PolicyDenied,
            Denied::Unjudged { .. } => ErrorCode::PolicyFailed,
        };
        let error = Self::new(code, denied.to_string());
        match denied {
            Denied::NotFound { kind, subject } => error.object(kind, subject),
            Denied::ByRule { rule, .. } => error.object("policy", rule),
            Denied::Unjudged { policy, .. } => error.object("policy", policy),
            _ => error,
        }
    }
}
