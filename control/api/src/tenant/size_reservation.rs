//! Size reservations of a project.

use control_convert::parse;
use control_convert::reservation::{reservation, reservation_matches};
use control_front::listing::listing;
use control_gate::Caller;
use control_state::{self as state, StateError};
use proto_public::api::v2::size_reservation_service_server::SizeReservationService;
use proto_public::api::v2::{
    SizeReservationServiceGetRequest, SizeReservationServiceGetResponse,
    SizeReservationServiceListRequest, SizeReservationServiceListResponse,
};
use proto_types::{ProjectId, ReservationId};
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl SizeReservationService for Services {
    async fn get(
        &self,
        request: Request<SizeReservationServiceGetRequest>,
    ) -> ApiResult<SizeReservationServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: ReservationId = parse("id", &request.id)?;
        let project: ProjectId = parse("project", &request.project)?;
        let found = self.gate.read(&caller, |tables| {
            let found = tables.get::<state::SizeReservation>(&id);
            found
                .filter(|reservation| reservation.project == project)
                .cloned()
                .ok_or_else(|| StateError::not_found("size-reservation", id))
        });
        ok(SizeReservationServiceGetResponse {
            size_reservation: Some(reservation(&*found.await?)),
        })
    }

    async fn list(
        &self,
        request: Request<SizeReservationServiceListRequest>,
    ) -> ApiResult<SizeReservationServiceListResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project: ProjectId = parse("project", &request.project)?;
        let found = self.gate.read(&caller, |tables| {
            let own = tables
                .all::<state::SizeReservation>()
                .filter(|reservation| {
                    reservation.project == project
                        && reservation_matches(reservation, request.query.as_ref())
                });
            Ok(own.cloned().collect())
        });
        listing(found.await?, reservation)
    }
}
