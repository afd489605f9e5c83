//! Tokens: how each is made.

use std::sync::Arc;

use control_convert::from_labels;
use control_convert::token::{life_ms, read_rights};
use control_gate::{Caller, WantedToken};
use control_state::{self as state};
use proto_public::api::v2::TokenServiceCreateRequest;
use tonic::Status;

use crate::services::Services;

pub(crate) fn wanted(
    user: String,
    request: TokenServiceCreateRequest,
) -> Result<WantedToken, Status> {
    let rights = read_rights(
        &request.permissions,
        &request.project_roles,
        &request.tenant_roles,
        &request.machine_roles,
        request.admin_role,
        request.infra_role,
    )?;
    Ok(WantedToken {
        user,
        description: request.description,
        labels: from_labels(request.labels),
        life_ms: life_ms(request.expires)?,
        rights,
        warrant: None,
    })
}

impl Services {
    pub(crate) async fn make(
        &self,
        caller: &Caller,
        wanted: WantedToken,
    ) -> Result<(Arc<state::Token>, String), Status> {
        let op = self.gate.new_token(caller, wanted);
        self.gate.make_token(caller, op).await
    }
}
