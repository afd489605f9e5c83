//! IP addresses of projects.

use std::net::IpAddr;
use std::sync::Arc;

use control_convert::enums::{from_family, from_ip_type};
use control_convert::network::{ip, ip_matches};
use control_convert::{chosen, from_labels, labels_update, lock, parse, parse_opt};
use control_front::listing::listing;
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::{
    self as state, CreateIp, DeleteIp, ErrorCode, Ip, IpKey, StateError, UpdateIp,
};
use proto_public::api::v2::ip_service_server::IpService;
use proto_public::api::v2::{
    IpServiceCreateRequest, IpServiceCreateResponse, IpServiceDeleteRequest,
    IpServiceDeleteResponse, IpServiceGetRequest, IpServiceGetResponse, IpServiceListRequest,
    IpServiceListResponse, IpServiceUpdateRequest, IpServiceUpdateResponse,
};
use proto_types::{IpId, ProjectId};
use tonic::{Request, Status};
use uuid::Uuid;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl IpService for Services {
    async fn get(&self, request: Request<IpServiceGetRequest>) -> ApiResult<IpServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project: ProjectId = parse("project", &request.project)?;
        let address: IpAddr = parse("ip", &request.ip)?;
        let namespace: Option<ProjectId> = parse_opt("namespace", request.namespace.as_ref())?;
        let found = self.gate.read(&caller, |tables| {
            Ok(ip(&*find(tables, address, project, namespace)?))
        });
        ok(IpServiceGetResponse {
            ip: Some(found.await?),
        })
    }

    async fn create(
        &self,
        request: Request<IpServiceCreateRequest>,
    ) -> ApiResult<IpServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = CreateIp {
            id: IpId::new(Uuid::now_v7()),
            network: parse("network", &request.network)?,
            project: parse("project", &request.project)?,
            name: request.name.unwrap_or_default(),
            description: request.description.unwrap_or_default(),
            labels: from_labels(request.labels),
            kind: chosen("type", request.r#type, from_ip_type)?.unwrap_or_default(),
            ip: parse_opt("ip", request.ip.as_ref())?,
            family: chosen("address_family", request.address_family, from_family)?,
            machine: parse_opt("machine", request.machine.as_ref())?,
            underlay: caller.is_admin_editor(),
        };
        let made = self.ip_reply(&caller, op).await?;
        ok(IpServiceCreateResponse {
            ip: Some(ip(&made)),
        })
    }

    async fn update(
        &self,
        request: Request<IpServiceUpdateRequest>,
    ) -> ApiResult<IpServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let namespace = namespace_of(&request)?;
        let request = request.into_inner();
        let project: ProjectId = parse("project", &request.project)?;
        let op = UpdateIp {
            key: self.key(&caller, &request.ip, project, namespace).await?,
            lock: lock(request.update_meta)?,
            project,
            name: request.name,
            description: request.description,
            kind: chosen("type", request.r#type, from_ip_type)?,
            labels: labels_update(request.labels),
            underlay: caller.is_admin_editor(),
        };
        let changed = self.ip_reply(&caller, op).await?;
        ok(IpServiceUpdateResponse {
            ip: Some(ip(&changed)),
        })
    }

    async fn list(
        &self,
        request: Request<IpServiceListRequest>,
    ) -> ApiResult<IpServiceListResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project: ProjectId = parse("project", &request.project)?;
        let ips = self.gate.read(&caller, |tables| {
            let own = state::query::project_ips(tables, project);
            let fitting = own.filter(|ip| ip_matches(tables, ip, request.query.as_ref()));
            Ok(fitting.cloned().collect())
        });
        listing(ips.await?, ip)
    }

    async fn delete(
        &self,
        request: Request<IpServiceDeleteRequest>,
    ) -> ApiResult<IpServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let namespace = namespace_of(&request)?;
        let request = request.into_inner();
        let project: ProjectId = parse("project", &request.project)?;
        let op = DeleteIp {
            key: self.key(&caller, &request.ip, project, namespace).await?,
            project,
            underlay: caller.is_admin_editor(),
        };
        let gone = self.ip_reply(&caller, op).await?;
        ok(IpServiceDeleteResponse {
            ip: Some(ip(&gone)),
        })
    }
}

/// Metadata of update and delete requests that names the namespace of the address, a project's id
/// or [`NO_NAMESPACE`]: the contract's messages have no field for it.
const NAMESPACE: &str = "metalmesh-namespace";
/// The value of [`NAMESPACE`] for the address that is in no namespace.
const NO_NAMESPACE: &str = "none";

/// The namespaces in which an address is looked up.
#[derive(Debug, Clone, Copy)]
enum NamespaceFilter {
    /// Every namespace.
    Anywhere,
    /// The namespace of this project. `None` means no namespace.
    Namespace(Option<ProjectId>),
}

impl NamespaceFilter {
    fn has(self, ip: &Ip) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Namespace(namespace) => ip.namespace == namespace,
        }
    }
}

/// The namespace that the metadata names.
///
/// # Errors
/// `invalid_argument` for what is neither a project's id nor "none".
fn namespace_of<T>(request: &Request<T>) -> Result<NamespaceFilter, Status> {
    let Some(value) = request.metadata().get(NAMESPACE) else {
        return Ok(NamespaceFilter::Anywhere);
    };
    match value.to_str().unwrap_or_default() {
        NO_NAMESPACE => Ok(NamespaceFilter::Namespace(None)),
        id => Ok(NamespaceFilter::Namespace(Some(parse(NAMESPACE, id)?))),
    }
}

fn fitting(
    tables: &state::Tables,
    address: IpAddr,
    project: ProjectId,
    place: NamespaceFilter,
) -> impl Iterator<Item = &Arc<Ip>> {
    state::query::project_ips(tables, project).filter(move |ip| ip.ip == address && place.has(ip))
}

/// A project's address to be shown. Several namespaces may have the same address. Without a
/// namespace in the request, the address of no namespace comes first, then the one in the project's
/// own, then one of a network that another project shares.
fn find(
    tables: &state::Tables,
    address: IpAddr,
    project: ProjectId,
    namespace: Option<ProjectId>,
) -> Result<Arc<Ip>, StateError> {
    let rank = |ip: &Arc<Ip>| (ip.namespace.is_some(), ip.namespace != Some(project));
    let place = namespace.map_or(NamespaceFilter::Anywhere, |id| {
        NamespaceFilter::Namespace(Some(id))
    });
    fitting(tables, address, project, place)
        .min_by_key(|ip| rank(ip))
        .cloned()
        .ok_or_else(|| StateError::not_found("ip", address))
}

/// A project's address to be changed or deleted.
///
/// # Errors
/// `not_found`; MM-1414 if the address is in several namespaces: none of them is guessed.
fn find_only(
    tables: &state::Tables,
    address: IpAddr,
    project: ProjectId,
    place: NamespaceFilter,
) -> Result<IpKey, StateError> {
    let found: Vec<_> = fitting(tables, address, project, place).collect();
    match found.as_slice() {
        [only] => Ok(IpKey {
            namespace: only.namespace,
            ip: only.ip,
        }),
        [] => Err(StateError::not_found("ip", address)),
        several => Err(ambiguous(address, several)),
    }
}

fn ambiguous(address: IpAddr, several: &[&Arc<Ip>]) -> StateError {
    let place = |ip: &&Arc<Ip>| match ip.namespace {
        Some(namespace) => format!("network \"{}\" (namespace {namespace})", ip.network),
        None => format!("network \"{}\" (no namespace)", ip.network),
    };
    let places: Vec<_> = several.iter().map(place).collect();
    let message = format!("address {address} is in {}", places.join(" and in "));
    let hint = format!(
        "send the header {NAMESPACE} with the namespace's id, or \"{NO_NAMESPACE}\": \
         metalmesh ip rm {address} --namespace ID"
    );
    StateError::new(ErrorCode::AddressAmbiguous, message)
        .object("ip", address)
        .hint(hint)
}

impl Services {
    async fn ip_reply(&self, caller: &Caller, op: impl Into<state::Op>) -> Result<Arc<Ip>, Status> {
        self.gate.propose(caller, op).await?.ip().map_err(of_state)
    }

    async fn key(
        &self,
        caller: &Caller,
        address: &str,
        project: ProjectId,
        place: NamespaceFilter,
    ) -> Result<IpKey, Status> {
        let address: IpAddr = parse("ip", address)?;
        self.gate
            .read(caller, |tables| find_only(tables, address, project, place))
            .await
    }
}
