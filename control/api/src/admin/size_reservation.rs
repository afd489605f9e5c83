//! Size reservations, kept by administrators.

use std::sync::Arc;

use control_convert::reservation::{
    from_amount, from_reservation, reservation, reservation_matches,
};
use control_convert::{labels_update, lock, parse, parse_all, required};
use control_front::listing::listing;
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::{
    self as state, CreateSizeReservation, DeleteSizeReservation, UpdateSizeReservation,
};
use proto_public::admin::v2 as admin;
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl admin::size_reservation_service_server::SizeReservationService for Services {
    async fn create(
        &self,
        request: Request<admin::SizeReservationServiceCreateRequest>,
    ) -> ApiResult<admin::SizeReservationServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let wanted = required("size_reservation", request.into_inner().size_reservation)?;
        let op = CreateSizeReservation(from_reservation(wanted)?);
        let made = self.reservation_reply(&caller, op).await?;
        ok(admin::SizeReservationServiceCreateResponse {
            size_reservation: Some(reservation(&made)),
        })
    }

    async fn update(
        &self,
        request: Request<admin::SizeReservationServiceUpdateRequest>,
    ) -> ApiResult<admin::SizeReservationServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = UpdateSizeReservation {
            id: parse("id", &request.id)?,
            lock: lock(request.update_meta)?,
            name: request.name,
            description: request.description,
            partitions: Some(parse_all("partitions", &request.partitions)?),
            amount: request.amount.map(from_amount).transpose()?,
            labels: labels_update(request.labels),
        };
        let changed = self.reservation_reply(&caller, op).await?;
        ok(admin::SizeReservationServiceUpdateResponse {
            size_reservation: Some(reservation(&changed)),
        })
    }

    async fn delete(
        &self,
        request: Request<admin::SizeReservationServiceDeleteRequest>,
    ) -> ApiResult<admin::SizeReservationServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let op = DeleteSizeReservation(parse("id", &request.get_ref().id)?);
        let gone = self.reservation_reply(&caller, op).await?;
        ok(admin::SizeReservationServiceDeleteResponse {
            size_reservation: Some(reservation(&gone)),
        })
    }

    async fn list(
        &self,
        request: Request<admin::SizeReservationServiceListRequest>,
    ) -> ApiResult<admin::SizeReservationServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let found = self.gate.read(&caller, |tables| {
            let fitting = tables
                .all::<state::SizeReservation>()
                .filter(|reservation| reservation_matches(reservation, query.as_ref()));
            Ok(fitting.cloned().collect())
        });
        listing(found.await?, reservation)
    }
}

impl Services {
    async fn reservation_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<Arc<state::SizeReservation>, Status> {
        let reply = self.gate.propose(caller, op).await?;
        reply.size_reservation().map_err(of_state)
    }
}
