//! A restored cluster: its machines as the backup knows them, beside what was observed since.

use control_convert::time;
use control_gate::Caller;
use control_state::life::{self, KeptPort, RestoredMachine};
use control_state::{ErrorCode, ReconcileRestore, Restored, StateError, Tables};
use proto_public::metalmesh::admin::v1 as mesh;
use tonic::Status;

use crate::services::Services;

impl Services {
    /// Compares the restored state with what was observed since. Unless it is a trial, also ends
    /// the hold, so that the state is judged again.
    pub(super) async fn compare_and_reconcile(
        &self,
        caller: &Caller,
        judge_silent: bool,
    ) -> Result<mesh::ClusterServiceReconcileAfterRestoreResponse, Status> {
        let compared = self
            .gate
            .read(caller, |tables| compared(tables, judge_silent))
            .await?;
        if caller.permit.is_trial() && !compared.silent_switches.is_empty() {
            // The command would be refused because of silent switches. A trial shows which ones.
            return Ok(compared);
        }
        let op = ReconcileRestore { judge_silent };
        self.gate.propose(caller, op).await?;
        Ok(compared)
    }
}

fn compared(
    tables: &Tables,
    judge_silent: bool,
) -> Result<mesh::ClusterServiceReconcileAfterRestoreResponse, StateError> {
    let Some(Restored { made_at, revision }) = life::restored(tables).cloned() else {
        let what = "the state was not restored from a backup, or was reconciled already";
        return Err(StateError::new(ErrorCode::NotRestored, what));
    };
    let machines = life::restored_machines(tables, made_at);
    let ports = life::kept_ports(tables, made_at).into_iter();
    let ports = ports.filter(|port| !judge_silent && port.known != port.kept);
    let silent = life::silent_switches(tables, made_at);
    Ok(mesh::ClusterServiceReconcileAfterRestoreResponse {
        backup_made_at: time(made_at),
        backup_revision: revision,
        machines: machines
            .map(|machine| shown(&machine, made_at, judge_silent))
            .collect(),
        ports: ports.map(|port| shown_port(&port)).collect(),
        silent_switches: silent.map(ToString::to_string).collect(),
    })
}

fn shown_port(port: &KeptPort<'_>) -> mesh::RestoredPort {
    let machine = port.machine.map(|machine| machine.id.to_string());
    mesh::RestoredPort {
        switch: port.switch.id.to_string(),
        port: port.port.to_owned(),
        machine: machine.unwrap_or_default(),
        known_vni: port.known.get(),
        kept_vni: port.kept.get(),
    }
}

fn shown(
    restored: &RestoredMachine<'_>,
    made_at: proto_types::Timestamp,
    judge_silent: bool,
) -> mesh::RestoredMachine {
    let RestoredMachine {
        machine,
        log,
        is_observed,
        is_proven,
    } = restored;
    let allocation = machine.allocation.as_ref();
    let events = log.iter().flat_map(|log| &log.events);
    let mut since = events.filter(|event| event.time > made_at);
    mesh::RestoredMachine {
        uuid: machine.id.to_string(),
        partition: machine
            .partition
            .as_ref()
            .map_or_else(String::new, ToString::to_string),
        phase: machine.phase.as_str().to_owned(),
        project: allocation.map_or_else(String::new, |allocation| allocation.project.to_string()),
        heard_at: log.and_then(|log| time(log.last_event_time)),
        event: since
            .next_back()
            .map_or_else(String::new, |event| event.kind.to_string()),
        power_state: (machine.bmc.as_ref())
            .map(|bmc| bmc.power_state.clone())
            .unwrap_or_default(),
        observed: *is_observed,
        locked: !judge_silent && restored.must_be_locked(),
        proven: *is_proven,
    }
}
