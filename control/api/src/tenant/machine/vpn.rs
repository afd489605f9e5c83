//! A firewall that is allocated gets a key of its own into the VPN, where there is one.

use std::sync::Arc;

use control_convert::vpn_key::seal_name;
use control_gate::Caller;
use control_gate::refusal::{of_state, refused};
use control_state::{AllocateMachine, AllocationType, Command, ErrorCode, Machine, VpnAccess};
use control_vpn::WantedVpnKey;
use proto_types::AllocationId;
use tonic::{Code, Status};

use crate::resource::vpn::{LIFE_DEFAULT, failed};
use crate::services::Services;

impl Services {
    /// Allocates a machine. A firewall's key is made first and goes into the same log entry as the
    /// allocation. If the allocation fails, the key is ended.
    pub(super) async fn allocate(
        &self,
        caller: &Caller,
        mut op: AllocateMachine,
    ) -> Result<Arc<Machine>, Status> {
        let vpn = self.node.vpn.as_ref();
        let Some(vpn) = vpn.filter(|_| op.kind == AllocationType::Firewall) else {
            return self.machine_reply(caller, op).await;
        };
        let (id, user) = (op.id, op.project.to_string());
        // Tried first: a refused allocation must not leave a key at the VPN.
        let command = Command::new(self.gate.now(), &caller.user, op.clone());
        let tried = self
            .gate
            .attempt(&command)
            .await?
            .machine()
            .map_err(of_state)?;
        if caller.permit.is_trial() || !has(&tried, id) {
            // A request repeated with its idempotency key finds its machine, which has a key.
            return self.machine_reply(caller, op).await;
        }
        let wanted = WantedVpnKey {
            user: user.clone(),
            ephemeral: false,
            reusable: false,
            life: LIFE_DEFAULT,
        };
        let made = vpn.key(wanted).await.map_err(failed)?;
        let key = made.id;
        let sealed = self.seal(id, &made.key);
        let is_sealed = sealed.is_ok();
        let allocated = match sealed {
            Ok(sealed_key) => {
                op.vpn = Some(VpnAccess {
                    address: vpn.address().to_owned(),
                    key_id: key.clone(),
                    sealed_key,
                    expires_at: made.expires_at,
                });
                self.machine_reply(caller, op).await
            }
            Err(status) => Err(status),
        };
        let is_used = match &allocated {
            Ok(machine) => has(machine, id),
            Err(refused) => is_sealed && is_unknown(refused.code()),
        };
        if !is_used && let Err(error) = vpn.remove(&user, &key).await {
            // Harmless: the key admits one node, and expires after `LIFE_DEFAULT`.
            tracing::warn!(error = %error, project = %user, "an unused VPN key could not be ended");
        }
        allocated
    }

    /// Seals the VPN key of an allocation.
    fn seal(&self, of: AllocationId, key: &str) -> Result<Vec<u8>, Status> {
        let sealed = self.node.pki.seal(&seal_name(of), key.as_bytes());
        sealed.map_err(|error| {
            tracing::error!(error = %error, "a key of the VPN could not be sealed");
            refused(ErrorCode::Internal, "the VPN's key could not be kept")
        })
    }
}

fn has(machine: &Machine, allocation: AllocationId) -> bool {
    let holder = machine.allocation.as_ref();
    holder.is_some_and(|holder| holder.id == allocation)
}

/// `true` if the command may have been applied although the caller got an error.
fn is_unknown(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable | Code::Unknown | Code::Internal | Code::DeadlineExceeded
    )
}
