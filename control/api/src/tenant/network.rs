//! Networks of a project, and those that it may use.

use std::sync::Arc;

use control_convert::enums::from_network_family;
use control_convert::network::{
    Fullness, NetworkRow, from_length, is_base_network, network, network_matches,
};
use control_convert::{chosen, from_labels, labels_update, lock, parse, parse_opt};
use control_front::listing::listing;
use control_gate::Caller;
use control_state::{self as state, CreateChildNetwork, DeleteNetwork, UpdateNetwork};
use proto_public::api::v2::network_service_server::NetworkService;
use proto_public::api::v2::{
    self as api, NetworkServiceCreateRequest, NetworkServiceCreateResponse,
    NetworkServiceDeleteRequest, NetworkServiceDeleteResponse, NetworkServiceGetRequest,
    NetworkServiceGetResponse, NetworkServiceListBaseNetworksRequest,
    NetworkServiceListBaseNetworksResponse, NetworkServiceListRequest, NetworkServiceListResponse,
    NetworkServiceUpdateRequest, NetworkServiceUpdateResponse,
};
use proto_types::{NetworkId, ProjectId};
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

use crate::resource::network::new_id;

#[tonic::async_trait]
impl NetworkService for Services {
    async fn get(
        &self,
        request: Request<NetworkServiceGetRequest>,
    ) -> ApiResult<NetworkServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: NetworkId = parse("id", &request.id)?;
        let project = project_of(&request.project)?;
        let found = self.gate.read(&caller, |tables| {
            let found = tables.get::<state::Network>(&id);
            match found {
                Some(own) if own.project == project => {
                    Ok(network(own, Some(&Fullness::of(tables))))
                }
                // Every project may use a base network, so that it is no secret.
                Some(base) if is_base_network(base, project) => Ok(network(base, None)),
                _ => Err(state::StateError::not_found("network", &id)),
            }
        });
        ok(NetworkServiceGetResponse {
            network: Some(found.await?),
        })
    }

    async fn create(
        &self,
        request: Request<NetworkServiceCreateRequest>,
    ) -> ApiResult<NetworkServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = CreateChildNetwork {
            id: new_id()?,
            project: parse("project", &request.project)?,
            name: request.name,
            description: request.description,
            labels: from_labels(request.labels),
            partition: parse_opt("partition", request.partition.as_ref())?,
            parent: parse_opt("parent_network", request.parent_network.as_ref())?,
            length: from_length("length", request.length)?,
            family: chosen(
                "address_family",
                request.address_family,
                from_network_family,
            )?,
        };
        let made = self.network_reply(&caller, op).await?;
        ok(NetworkServiceCreateResponse {
            network: Some(self.shown(&made).await?),
        })
    }

    async fn update(
        &self,
        request: Request<NetworkServiceUpdateRequest>,
    ) -> ApiResult<NetworkServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = UpdateNetwork {
            id: parse("id", &request.id)?,
            lock: lock(request.update_meta)?,
            project: Some(parse("project", &request.project)?),
            name: request.name,
            description: request.description,
            labels: labels_update(request.labels),
            prefixes: None,
            destination_prefixes: None,
            default_child_length: None,
            min_child_length: None,
            nat: None,
            additional_announcable_cidrs: None,
            force: false,
        };
        let changed = self.network_reply(&caller, op).await?;
        ok(NetworkServiceUpdateResponse {
            network: Some(self.shown(&changed).await?),
        })
    }

    async fn list(
        &self,
        request: Request<NetworkServiceListRequest>,
    ) -> ApiResult<NetworkServiceListResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = project_of(&request.project)?;
        let networks = self.gate.read(&caller, |tables| {
            let fullness = Fullness::of(tables);
            let own = tables
                .all::<state::Network>()
                .filter(|network| network.project == project)
                .filter(|network| network_matches(network, request.query.as_ref()));
            Ok(own.map(|network| fullness.row(network)).collect())
        });
        listing(networks.await?, NetworkRow::network)
    }

    async fn list_base_networks(
        &self,
        request: Request<NetworkServiceListBaseNetworksRequest>,
    ) -> ApiResult<NetworkServiceListBaseNetworksResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = project_of(&request.project)?;
        // `project` names the caller's project, not the owner of the wanted networks.
        let query = request.query.map(|query| api::NetworkQuery {
            project: None,
            ..query
        });
        let networks = self.gate.read(&caller, |tables| {
            let fullness = Fullness::of(tables);
            let base = tables
                .all::<state::Network>()
                .filter(|network| is_base_network(network, project))
                .filter(|network| network_matches(network, query.as_ref()));
            let shown = |network: &Arc<state::Network>| match network.project {
                Some(_) => fullness.row(network),
                None => NetworkRow::untold(network),
            };
            Ok(base.map(shown).collect())
        });
        listing(networks.await?, NetworkRow::network)
    }

    async fn delete(
        &self,
        request: Request<NetworkServiceDeleteRequest>,
    ) -> ApiResult<NetworkServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = DeleteNetwork {
            id: parse("id", &request.id)?,
            project: Some(parse("project", &request.project)?),
        };
        let gone = self.network_reply(&caller, op).await?;
        ok(NetworkServiceDeleteResponse {
            network: Some(network(&gone, None)),
        })
    }
}

/// The project that reads. Empty means networks without a project; the gate lets only
/// administrators leave it out.
fn project_of(text: &str) -> Result<Option<ProjectId>, Status> {
    match text {
        "" => Ok(None),
        id => parse("project", id).map(Some),
    }
}
