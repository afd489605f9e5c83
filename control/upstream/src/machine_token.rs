//! The token with which the hammer of the published stack speaks for its machine.

use std::sync::Arc;

use control_convert::from_labels;
use control_convert::token::life_ms;
use control_gate::principal::WantedRights;
use control_gate::refusal::of_state;
use control_gate::{Caller, WantedToken};
use control_state::life::Nonce;
use control_state::{CreateMachineToken, EditorViewer, ErrorCode, StateError, Token};
use proto_public::infra::v2 as infra;
use proto_types::MachineId;
use tonic::Status;

use crate::Upstream;

impl Upstream {
    /// Makes a token of one machine for the hammer of the published stack. The boot server's agent
    /// may ask for it because the contract lets it call this method; its own token does not hold the
    /// right that the new one gets.
    pub(crate) async fn new_machine_token(
        &self,
        caller: &Caller,
        machine: MachineId,
        request: infra::BootServiceMachineTokenRequest,
    ) -> Result<(Arc<Token>, String), Status> {
        let role = EditorViewer::Editor;
        let rights = WantedRights {
            machine_roles: [(machine.to_string(), role)].into(),
            ..WantedRights::default()
        };
        let warrant = self
            .gate
            .warrant(caller, &request.user, &rights.rights())
            .await?;
        let wanted = WantedToken {
            user: request.user,
            description: format!("machine {machine}"),
            labels: from_labels(request.labels),
            life_ms: life_ms(request.expires)?,
            rights,
            warrant,
        };
        let token = self.gate.new_token(caller, wanted);
        let op = CreateMachineToken { token, machine };
        self.gate.make_token(caller, op).await
    }

    /// Refuses the token if the partition requires a machine to return the nonce in its BMC: the
    /// contract has no field for the nonce, so the published hammer cannot return it.
    pub(crate) async fn check_nonce(&self, caller: &Caller, id: MachineId) -> Result<(), Status> {
        let is_demanded = self
            .gate
            .read(caller, |tables| Ok(Nonce::of(tables, id).is_demanded));
        if !is_demanded.await? {
            return Ok(());
        }
        let message = format!(
            "machine \"{id}\" must return what its BMC holds, which the published hammer cannot"
        );
        let hint = "boot metalmesh-hammer in this partition, or end the requirement: \
                    `metalmesh partition update PARTITION --require-bmc-nonce false`";
        let error = StateError::new(ErrorCode::NonceRefused, message).object("machine", id);
        Err(of_state(error.hint(hint)))
    }
}
