//! Switches, for administrators.

use std::sync::Arc;

use control_convert::enums::from_replace_mode;
use control_convert::machine::{fru, machine};
use control_convert::machine_history::Viewer;
use control_convert::switch::{matches, switch};
use control_convert::{chosen, lock, machine_query, parse, parse_opt};
use control_front::listing::{EncodedItems, listing_encoded};
use control_gate::Caller;
use control_gate::refusal::{invalid, of_state};
use control_state::{self as state, DeleteSwitch, MigrateSwitch, SetSwitchPort, UpdateSwitch};
use proto_public::admin::v2 as admin;
use proto_public::admin::v2::switch_service_server::SwitchService;
use proto_public::api::v2::{SwitchNicWithMachine, SwitchPortStatus, SwitchWithMachines};
use proto_types::SwitchId;
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl SwitchService for Services {
    async fn get(
        &self,
        request: Request<admin::SwitchServiceGetRequest>,
    ) -> ApiResult<admin::SwitchServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: SwitchId = parse("id", &request.get_ref().id)?;
        let found = self.gate.read(&caller, |tables| {
            Ok(switch(tables, tables.require::<state::Switch>(&id)?))
        });
        ok(admin::SwitchServiceGetResponse {
            switch: Some(found.await?),
        })
    }

    async fn list(
        &self,
        request: Request<admin::SwitchServiceListRequest>,
    ) -> ApiResult<admin::SwitchServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let switches = self.gate.read(&caller, |tables| {
            let fitting = tables
                .all::<state::Switch>()
                .filter(|switch| matches(tables, switch, query.as_ref()));
            let shown = fitting.map(|record| switch(tables, record));
            Ok(shown.collect::<EncodedItems>())
        });
        listing_encoded(switches.await?)
    }

    async fn update(
        &self,
        request: Request<admin::SwitchServiceUpdateRequest>,
    ) -> ApiResult<admin::SwitchServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: SwitchId = parse("id", &request.id)?;
        self.refuse_reported(&caller, &id, &request).await?;
        let op = UpdateSwitch {
            id,
            lock: lock(request.update_meta)?,
            description: request.description,
            replace_mode: chosen("replace_mode", request.replace_mode, from_replace_mode)?,
            management_ip: parse_opt("management_ip", request.management_ip.as_ref())?,
            management_user: request.management_user,
            console_command: request.console_command,
            labels: None,
        };
        let changed = self.switch_reply(&caller, op).await?;
        ok(admin::SwitchServiceUpdateResponse {
            switch: Some(changed),
        })
    }

    async fn delete(
        &self,
        request: Request<admin::SwitchServiceDeleteRequest>,
    ) -> ApiResult<admin::SwitchServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = DeleteSwitch {
            id: parse("id", &request.id)?,
            force: request.force,
        };
        let gone = self.switch_reply(&caller, op).await?;
        ok(admin::SwitchServiceDeleteResponse { switch: Some(gone) })
    }

    async fn migrate(
        &self,
        request: Request<admin::SwitchServiceMigrateRequest>,
    ) -> ApiResult<admin::SwitchServiceMigrateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = MigrateSwitch {
            from: parse("old_switch", &request.old_switch)?,
            to: parse("new_switch", &request.new_switch)?,
        };
        let changed = self.switch_reply(&caller, op).await?;
        ok(admin::SwitchServiceMigrateResponse {
            switch: Some(changed),
        })
    }

    async fn port(
        &self,
        request: Request<admin::SwitchServicePortRequest>,
    ) -> ApiResult<admin::SwitchServicePortResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let admin_up = match request.status() {
            SwitchPortStatus::Up => true,
            SwitchPortStatus::Down => false,
            SwitchPortStatus::Unspecified | SwitchPortStatus::Unknown => {
                return Err(invalid("status", "must be up or down"));
            }
        };
        let op = SetSwitchPort {
            id: parse("id", &request.id)?,
            port: request.nic_name,
            admin_up,
        };
        let changed = self.switch_reply(&caller, op).await?;
        ok(admin::SwitchServicePortResponse {
            switch: Some(changed),
        })
    }

    async fn connected_machines(
        &self,
        request: Request<admin::SwitchServiceConnectedMachinesRequest>,
    ) -> ApiResult<admin::SwitchServiceConnectedMachinesResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let found = self.gate.read(&caller, |tables| {
            let fitting = tables
                .all::<state::Switch>()
                .filter(|switch| matches(tables, switch, request.query.as_ref()));
            let shown = fitting.map(|switch| with_machines(tables, switch, &request));
            Ok(shown.collect::<EncodedItems>())
        });
        listing_encoded(found.await?)
    }
}

fn with_machines(
    tables: &state::Tables,
    record: &state::Switch,
    request: &admin::SwitchServiceConnectedMachinesRequest,
) -> SwitchWithMachines {
    let shown = switch(tables, record);
    let connections = shown
        .machine_connections
        .into_iter()
        .filter_map(|connection| {
            let id = connection.machine_id.parse().ok()?;
            let found = tables.get::<state::Machine>(&id)?;
            machine_query::matches(tables, found, request.machine_query.as_ref()).then(|| {
                SwitchNicWithMachine {
                    nic: connection.nic,
                    machine: Some(machine(tables, found, Viewer::Admin)),
                    fru: Some(fru(&found.fru)),
                }
            })
        });
    SwitchWithMachines {
        id: record.id.to_string(),
        partition: record.partition.to_string(),
        rack: record.rack.clone(),
        connections: connections.collect(),
    }
}

impl Services {
    /// Refuses a change of fields that the switch's agent reports. A client may write them back
    /// unchanged, as it does after a `Get`.
    ///
    /// # Errors
    /// `invalid_argument` if `nics` or `os` differ from the report.
    async fn refuse_reported(
        &self,
        caller: &Caller,
        id: &SwitchId,
        request: &admin::SwitchServiceUpdateRequest,
    ) -> Result<(), Status> {
        if request.nics.is_empty() && request.os.is_none() {
            return Ok(());
        }
        let own = self
            .gate
            .read(caller, |tables| {
                Ok(switch(tables, tables.require::<state::Switch>(id)?))
            })
            .await?;
        let same_os = request.os.is_none() || request.os == own.os;
        if same_os && (request.nics.is_empty() || request.nics == own.nics) {
            return Ok(());
        }
        Err(invalid("nics, os", "are reported by the switch's agent"))
    }

    async fn switch_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<proto_public::api::v2::Switch, Status> {
        let changed: Arc<state::Switch> = self
            .gate
            .propose(caller, op)
            .await?
            .switch()
            .map_err(of_state)?;
        self.gate
            .read(caller, |tables| Ok(switch(tables, &changed)))
            .await
    }
}
