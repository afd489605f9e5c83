//! `metalmesh machine bmc`, `confirm-bmc` and `console-password`.

use anyhow::Result;
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{MachineQuery, MachineServiceGetBmcRequest};
use proto_public::metalmesh::admin::v1::BmcClaimServiceConfirmRequest;

use super::details;
use crate::app::App;
use crate::cmd::given;
use crate::output::{message_json, print_table};

const DETAILS: &str = "metalstack.api.v2.MachineBMCDetails";
const CONFIRMED: &str = "metalmesh.admin.v1.BmcClaimServiceConfirmResponse";

/// Shows the BMC of one machine, or all BMCs, for administrators.
pub(super) async fn show(app: &App, machine: Option<&str>) -> Result<()> {
    let Some(machine) = machine else {
        return list(app).await;
    };
    let uuid = app.machine_id(machine).await?;
    let found = if let Some(project) = app.project().await? {
        let request = MachineServiceGetBmcRequest { uuid, project };
        let answer = app.client.machines().get_bmc(request).await?;
        answer.into_inner().bmc_details
    } else {
        let request = admin::MachineServiceGetBmcRequest { uuid };
        let answer = app.client.admin_machines().get_bmc(request).await?;
        answer.into_inner().bmc_details
    };
    app.output
        .message(DETAILS, &given(found)?, details::print_bmc)
}

async fn list(app: &App) -> Result<()> {
    let request = admin::MachineServiceListBmcRequest {
        query: Some(MachineQuery::default()),
    };
    let answer = app.client.admin_machines().list_bmc(request).await?;
    let all = answer.into_inner().bmc_details;
    if app.output.is_table() {
        for (at, one) in all.iter().enumerate() {
            if at > 0 {
                outln!();
            }
            details::print_bmc(one);
        }
        return Ok(());
    }
    let all = all.iter().map(|one| message_json(DETAILS, one));
    app.output.value(&all.collect::<Result<_>>()?)
}

/// Confirms the BMC at an address as the machine's: orders go to it.
pub(super) async fn confirm(app: &App, machine: &str, address: String) -> Result<()> {
    let machine = app.machine_id(machine).await?;
    let request = BmcClaimServiceConfirmRequest { machine, address };
    let answer = app.client.bmc_claims().confirm(request).await?;
    app.output.message(CONFIRMED, &answer.into_inner(), |bmc| {
        let row = vec![bmc.machine.clone(), bmc.address.clone()];
        print_table(&["machine", "bmc"], [row]);
    })
}

/// Prints the console password of an allocated machine. The reason goes into the audit trail.
pub(super) async fn console_password(app: &App, machine: &str, reason: String) -> Result<()> {
    let uuid = app.machine_id(machine).await?;
    let request = admin::MachineServiceConsolePasswordRequest { uuid, reason };
    let answer = app
        .client
        .admin_machines()
        .console_password(request)
        .await?;
    let answer = answer.into_inner();
    let whole = serde_json::json!({"uuid": answer.uuid, "password": answer.password});
    app.output.secret(&answer.password, &whole)
}
