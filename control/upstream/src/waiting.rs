//! A machine whose hammer, of the published stack, waits for its installation.
//!
//! That hammer wipes every disk before it waits and has no call to report the wipe, so its waiting
//! counts as the report.

use control_convert::vpn_key::vpn_key;
use control_gate::Caller;
use control_pki::Pki;
use control_state::life::{is_left_alone, restored};
use control_state::{
    DiskWipe, EventKind, EventLog, Machine, MachineEvent, Phase, Tables, WipeDone,
};
use proto_types::MachineId;
use tonic::Status;

use crate::Upstream;
use crate::convert::order;
use crate::signs_of_life::Beat;

/// Wipe method on record when the hammer reports only the end of a wipe.
const WIPE_METHOD: &str = "published-hammer";

impl Upstream {
    /// Records that the hammer waits: the end of the wipe, if the machine was wiping, and the event.
    pub(crate) async fn waits(&self, caller: &Caller, id: MachineId) -> Result<(), Status> {
        self.hears_machine(caller, id).await?;
        let wiped = self
            .gate
            .read(caller, |tables| {
                let found = tables.require::<Machine>(&id)?;
                if restored(tables).is_some() {
                    // The hammer may hold a token of the backup that another machine uses by now. Its
                    // disks must not count as wiped.
                    return Ok(None);
                }
                let fixed = found.hardware.disks.iter().filter(|disk| disk.is_fixed());
                let wiped = fixed.map(|disk| DiskWipe {
                    name: disk.name.clone(),
                    serial: disk.serial.clone(),
                    method: WIPE_METHOD.to_owned(),
                    ..DiskWipe::default()
                });
                Ok((found.phase == Phase::Wiping).then(|| wiped.collect()))
            })
            .await?;
        if let Some(disks) = wiped {
            self.gate.propose(caller, WipeDone { id, disks }).await?;
        }
        let is_news = self.gate.read(caller, |tables| {
            let found = tables.require::<Machine>(&id)?;
            let log = tables.get::<EventLog>(&id).and_then(|log| log.state);
            Ok(found.phase == Phase::Waiting && log != Some(EventKind::Waiting))
        });
        if is_news.await? {
            let op = MachineEvent {
                id,
                kind: EventKind::Waiting,
                message: String::new(),
                time: self.gate.now(),
            };
            self.gate.propose(caller, op).await?;
        }
        Ok(())
    }

    /// Reports the machine alive, as long as its stream is open.
    pub(crate) fn beat(&self, caller: &Caller, id: MachineId) -> Beat {
        let (upstream, caller) = (self.clone(), caller.clone());
        Box::new(move || {
            let (upstream, caller) = (upstream.clone(), caller.clone());
            Box::pin(async move { upstream.hears_machine(&caller, id).await })
        })
    }
}

/// The installation that hammer must carry out: the attempt, and the allocation for the contract.
pub(crate) fn installation(
    pki: &Pki,
    tables: &Tables,
    id: MachineId,
) -> Option<(u32, proto_public::api::v2::MachineAllocation)> {
    let machine = tables.get::<Machine>(&id)?;
    let allocation = machine.allocation.as_ref()?;
    // After a restore the disks may hold another tenant's data, which an installation would destroy.
    let is_held = restored(tables).is_some() || is_left_alone(machine);
    (machine.phase == Phase::Installing && !is_held).then(|| {
        (
            allocation.install.attempt,
            order(tables, machine, allocation, |member| vpn_key(pki, member)),
        )
    })
}
