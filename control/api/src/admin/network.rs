//! Networks, laid down by administrators.

use control_convert::enums::{from_nat_type, from_network_family, from_network_type};
use control_convert::network::{
    Fullness, NetworkRow, from_length, from_prefixes, network, network_matches, own_prefixes,
};
use control_convert::{chosen, from_labels, labels_update, lock, parse, parse_opt, required};
use control_front::listing::listing;
use control_gate::Caller;
use control_state::{self as state, CreateNetwork, DeleteNetwork, ErrorCode, UpdateNetwork};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{self as api};
use proto_types::NetworkId;
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

use crate::resource::network::new_id;

#[tonic::async_trait]
impl admin::network_service_server::NetworkService for Services {
    async fn get(
        &self,
        request: Request<admin::NetworkServiceGetRequest>,
    ) -> ApiResult<admin::NetworkServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: NetworkId = parse("id", &request.get_ref().id)?;
        let found = self.gate.read(&caller, |tables| {
            let found = tables.require::<state::Network>(&id)?;
            Ok(network(found, Some(&Fullness::of(tables))))
        });
        ok(admin::NetworkServiceGetResponse {
            network: Some(found.await?),
        })
    }

    async fn create(
        &self,
        request: Request<admin::NetworkServiceCreateRequest>,
    ) -> ApiResult<admin::NetworkServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        self.check_new(&caller, request.id.as_deref()).await?;
        let made = self.network_reply(&caller, create(request)?).await?;
        ok(admin::NetworkServiceCreateResponse {
            network: Some(self.shown(&made).await?),
        })
    }

    async fn update(
        &self,
        request: Request<admin::NetworkServiceUpdateRequest>,
    ) -> ApiResult<admin::NetworkServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let changed = self.network_reply(&caller, update(request)?).await?;
        ok(admin::NetworkServiceUpdateResponse {
            network: Some(self.shown(&changed).await?),
        })
    }

    async fn delete(
        &self,
        request: Request<admin::NetworkServiceDeleteRequest>,
    ) -> ApiResult<admin::NetworkServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let op = DeleteNetwork {
            id: parse("id", &request.get_ref().id)?,
            project: None,
        };
        let gone = self.network_reply(&caller, op).await?;
        ok(admin::NetworkServiceDeleteResponse {
            network: Some(network(&gone, None)),
        })
    }

    async fn list(
        &self,
        request: Request<admin::NetworkServiceListRequest>,
    ) -> ApiResult<admin::NetworkServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let networks = self.gate.read(&caller, |tables| {
            let fullness = Fullness::of(tables);
            let fitting = tables
                .all::<state::Network>()
                .filter(|network| network_matches(network, query.as_ref()));
            Ok(fitting.map(|network| fullness.row(network)).collect())
        });
        listing(networks.await?, NetworkRow::network)
    }
}

fn create(request: admin::NetworkServiceCreateRequest) -> Result<CreateNetwork, Status> {
    let kind = required("type", from_network_type(request.r#type))?;
    let id = match &request.id {
        Some(id) => parse("id", id)?,
        None if kind.is_child() => new_id()?,
        None => {
            let message = format!("a network of type {} needs an id", kind.as_str());
            return Err(control_gate::refusal::refused(
                ErrorCode::NetworkFieldMissing,
                message,
            ));
        }
    };
    Ok(CreateNetwork {
        id,
        kind,
        name: request.name,
        description: request.description,
        partition: parse_opt("partition", request.partition.as_ref())?,
        project: parse_opt("project", request.project.as_ref())?,
        labels: from_labels(request.labels),
        prefixes: own_prefixes("prefixes", &request.prefixes)?,
        destination_prefixes: from_prefixes("destination_prefixes", &request.destination_prefixes)?
            .unwrap_or_default(),
        default_child_length: from_length(
            "default_child_prefix_length",
            request.default_child_prefix_length,
        )?,
        min_child_length: from_length("min_child_prefix_length", request.min_child_prefix_length)?,
        nat: chosen("nat_type", request.nat_type, from_nat_type)?,
        vrf: request.vrf,
        parent: parse_opt("parent_network", request.parent_network.as_ref())?,
        additional_announcable_cidrs: from_prefixes(
            "additional_announcable_cidrs",
            &request.additional_announcable_cidrs,
        )?
        .unwrap_or_default(),
        length: from_length("length", request.length)?,
        family: chosen(
            "address_family",
            request.address_family,
            from_network_family,
        )?,
    })
}

/// An empty list keeps the stored one: on the wire it looks like an absent one, and a rename must
/// not clear anything. [`from_prefixes`] says how a client empties a list.
fn update(request: admin::NetworkServiceUpdateRequest) -> Result<UpdateNetwork, Status> {
    let prefixes: Vec<_> = own_prefixes("prefixes", &request.prefixes)?;
    let length = |field, length: Option<api::ChildPrefixLength>| {
        length
            .map(|length| from_length(field, Some(length)))
            .transpose()
    };
    Ok(UpdateNetwork {
        id: parse("id", &request.id)?,
        lock: lock(request.update_meta)?,
        project: None,
        name: request.name,
        description: request.description,
        labels: labels_update(request.labels),
        prefixes: (!prefixes.is_empty()).then_some(prefixes),
        destination_prefixes: from_prefixes("destination_prefixes", &request.destination_prefixes)?,
        default_child_length: length(
            "default_child_prefix_length",
            request.default_child_prefix_length,
        )?,
        min_child_length: length("min_child_prefix_length", request.min_child_prefix_length)?,
        nat: chosen("nat_type", request.nat_type, from_nat_type)?,
        additional_announcable_cidrs: from_prefixes(
            "additional_announcable_cidrs",
            &request.additional_announcable_cidrs,
        )?,
        force: request.force,
    })
}

impl Services {
    /// Refuses an existing id before the rest of the request is checked: clients that apply a list
    /// of networks skip existing ones by this code.
    ///
    /// # Errors
    /// `already_exists`.
    async fn check_new(&self, caller: &Caller, id: Option<&str>) -> Result<(), Status> {
        let Some(Ok(id)) = id.map(str::parse::<NetworkId>) else {
            return Ok(());
        };
        self.gate
            .read(caller, |tables| match tables.get::<state::Network>(&id) {
                Some(_) => Err(state::StateError::already_exists("network", &id)),
                None => Ok(()),
            })
            .await
    }
}
