//! The methods of the contract and their options.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor, Value};

use crate::api::v2::{
    AdminRole, Auditing, InfraRole, MachineRole, ProjectRole, TenantRole, Visibility,
};

const OPTIONS: &str = "metalstack.api.v2.";
/// Packages served here: the published contract, our own, and gRPC's own services.
const PACKAGES: [&str; 3] = ["metalstack.", OWN_PACKAGES, "grpc."];
/// Start of the names of our own packages.
const OWN_PACKAGES: &str = "metalmesh.";

/// The scope of a method: exactly one kind, with the exact set of roles that may call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All callers, also without a token.
    Public,
    /// All callers with a token, about themselves.
    Own,
    /// These roles in the tenant that the request's `login` names.
    Tenant(Vec<TenantRole>),
    /// These roles in the project that the request's `project` names.
    Project(Vec<ProjectRole>),
    /// These roles on the machine that the request's `uuid` names.
    Machine(Vec<MachineRole>),
    /// These administrators.
    Admin(Vec<AdminRole>),
    /// These agents.
    Infra(Vec<InfraRole>),
}

impl Scope {
    /// The name of the kind, as listings of methods show it.
    pub fn visibility(&self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Own => "self",
            Self::Tenant(_) => "tenant",
            Self::Project(_) => "project",
            Self::Machine(_) => "machine",
            Self::Admin(_) => "admin",
            Self::Infra(_) => "infra",
        }
    }

    /// The request field that names the subject. `None` if the kind has no subject.
    pub fn subject_field(&self) -> Option<&'static str> {
        match self {
            Self::Tenant(_) => Some("login"),
            Self::Project(_) => Some("project"),
            Self::Machine(_) => Some("uuid"),
            Self::Public | Self::Own | Self::Admin(_) | Self::Infra(_) => None,
        }
    }
}

/// One method of the public API.
#[derive(Debug, Clone)]
pub struct Method {
    /// Index in [`methods`].
    pub index: usize,
    /// Path in the URL, such as `/metalstack.api.v2.IPService/Get`.
    pub path: String,
    /// `metalstack.api.v2.IPService`.
    pub service: String,
    /// `Get`.
    pub name: String,
    /// The request.
    pub input: MessageDescriptor,
    /// The response, or each message of the response stream.
    pub output: MessageDescriptor,
    /// `true` if the caller sends a stream. Only reflection does.
    pub client_streaming: bool,
    /// `true` if the answer is a stream.
    pub server_streaming: bool,
    /// The callers that may call it.
    pub scope: Scope,
    /// `true` if calls are recorded in the audit trail.
    pub audited: bool,
}

/// Names of methods without side effects other than audit records. The published contract has no
/// option for this, and its descriptors stay unchanged.
const READS: [&str; 23] = [
    "Capacity",
    "Check",
    "ConnectedMachines",
    "Get",
    "GetBMC",
    "InviteGet",
    "InvitesList",
    "Issues",
    "Latest",
    "List",
    "ListBMC",
    "ListBaseNetworks",
    "ListClaims",
    "ListHosts",
    "ListNodes",
    "ListProjects",
    "Match",
    "Queues",
    "Status",
    "TokenScopedList",
    "Try",
    "Usage",
    "Exports",
];

impl Method {
    /// `true` if a call has no side effects and one message each way, so that Connect permits a GET.
    pub fn is_read(&self) -> bool {
        !self.client_streaming && !self.server_streaming && READS.contains(&self.name.as_str())
    }

    /// `true` if requests in JSON may have no unknown fields: in the methods of our own packages. The
    /// others are contracts of other projects, whose servers ignore them.
    pub fn has_strict_json(&self) -> bool {
        self.service.starts_with(OWN_PACKAGES)
    }
}

/// A request message of the API (not of gRPC's own services); each belongs to exactly one method.
pub trait Request: prost::Message + Default {
    /// The answer, or each message of the response stream.
    type Response: prost::Message + Default;
    /// The method's path in the URL.
    const PATH: &'static str;
    /// Index of the method in [`methods`].
    const INDEX: usize;
    /// The subject of the request, if the method's scope requires one: tenant login, project or
    /// machine uuid.
    fn subject(&self) -> Option<&str>;
    /// The method.
    fn method() -> &'static Method {
        &METHODS[Self::INDEX]
    }
}

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    let ours = |name: &str| PACKAGES.iter().any(|package| name.starts_with(package));
    crate::pool()
        .services()
        .filter(|s| ours(s.full_name()))
        .flat_map(|s| s.methods().collect::<Vec<_>>())
        .enumerate()
        .map(|(index, method)| read(index, &method))
        .collect()
});

static BY_PATH: LazyLock<HashMap<&'static str, &'static Method>> =
    LazyLock::new(|| METHODS.iter().map(|m| (m.path.as_str(), m)).collect());

/// All methods, in the order of the contract.
pub fn methods() -> &'static [Method] {
    &METHODS
}

/// The method behind a URL path such as `/metalstack.api.v2.IPService/Get`.
pub fn method(path: &str) -> Option<&'static Method> {
    BY_PATH.get(path).copied()
}

fn read(index: usize, method: &MethodDescriptor) -> Method {
    let service = method.parent_service().full_name().to_owned();
    Method {
        index,
        path: format!("/{service}/{}", method.name()),
        name: method.name().to_owned(),
        input: method.input(),
        output: method.output(),
        client_streaming: method.is_client_streaming(),
        server_streaming: method.is_server_streaming(),
        scope: scope(&method.options()),
        audited: numbers(&method.options(), "auditing") != [Auditing::Excluded as i32],
        service,
    }
}

/// Reads the scope. The build has checked that exactly one of these options is set (`build/lint.rs`).
fn scope(options: &DynamicMessage) -> Scope {
    if let Some(roles) = roles(options, "tenant_roles") {
        Scope::Tenant(roles)
    } else if let Some(roles) = roles(options, "project_roles") {
        Scope::Project(roles)
    } else if let Some(roles) = roles(options, "machine_roles") {
        Scope::Machine(roles)
    } else if let Some(roles) = roles(options, "admin_roles") {
        Scope::Admin(roles)
    } else if let Some(roles) = roles(options, "infra_roles") {
        Scope::Infra(roles)
    } else if numbers(options, "visibility") == [Visibility::Public as i32] {
        Scope::Public
    } else {
        Scope::Own
    }
}

fn roles<R: TryFrom<i32>>(options: &DynamicMessage, name: &str) -> Option<Vec<R>> {
    let roles: Vec<R> = numbers(options, name)
        .into_iter()
        .filter_map(|n| R::try_from(n).ok())
        .collect();
    (!roles.is_empty()).then_some(roles)
}

fn numbers(options: &DynamicMessage, name: &str) -> Vec<i32> {
    let Some(extension) = crate::pool().get_extension_by_name(&format!("{OPTIONS}{name}")) else {
        return Vec::new();
    };
    match options.get_extension(&extension).as_ref() {
        Value::EnumNumber(number) => vec![*number],
        Value::List(values) => values.iter().filter_map(Value::as_enum_number).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_scopes() {
        let scope = |path| method(path).unwrap().scope.clone();
        assert_eq!(
            scope("/metalstack.api.v2.VersionService/Get"),
            Scope::Public
        );
        assert_eq!(scope("/metalstack.api.v2.ImageService/List"), Scope::Own);
        assert_eq!(
            scope("/metalstack.api.v2.ProjectService/Leave"),
            Scope::Project(vec![ProjectRole::Viewer])
        );
        assert_eq!(
            scope("/metalmesh.admin.v1.JoinService/Create"),
            Scope::Admin(vec![AdminRole::Editor])
        );
        let wait = method("/metalstack.infra.v2.BootService/Wait").unwrap();
        assert_eq!(wait.scope, Scope::Machine(vec![MachineRole::Editor]));
        assert!(wait.server_streaming && !wait.client_streaming && wait.audited);
        assert!(
            !method("/metalstack.infra.v2.ComponentService/Ping")
                .unwrap()
                .audited
        );
        assert!(method("/metalstack.api.v2.VersionService/Nope").is_none());
    }

    #[test]
    fn requests_know_method_and_subject() {
        use crate::api::v2::{
            IpServiceGetRequest, TenantServiceGetRequest, VersionServiceGetRequest,
        };
        let get = IpServiceGetRequest {
            project: "p".to_owned(),
            ..Default::default()
        };
        assert_eq!(
            IpServiceGetRequest::method().path,
            IpServiceGetRequest::PATH
        );
        assert_eq!(get.subject(), Some("p"));
        assert_eq!(
            TenantServiceGetRequest {
                login: "t".to_owned()
            }
            .subject(),
            Some("t")
        );
        assert_eq!(VersionServiceGetRequest {}.subject(), None);
        for (index, method) in methods().iter().enumerate() {
            assert_eq!(
                (method.index, self::method(&method.path).unwrap().index),
                (index, index)
            );
        }
    }

    #[test]
    fn all_methods_of_the_published_version_are_there() {
        let published = methods()
            .iter()
            .filter(|m| m.service.starts_with("metalstack."))
            .count();
        assert_eq!(published, 152);
    }
}
