//! `metalmesh network trace`.

use std::net::IpAddr;

use anyhow::Result;
use proto_public::metalmesh::admin::v1::{FabricHop, FabricServiceGetTraceRequest};

use crate::app::App;
use crate::cmd::given;
use crate::output::{TableRow, print_table};

/// Prints the way of a packet.
pub(super) async fn run(app: &App, from: &str, to: IpAddr) -> Result<()> {
    let request = FabricServiceGetTraceRequest {
        machine: app.machine_id(from).await?,
        address: to.to_string(),
    };
    let answer = app.client.fabric().get_trace(request).await?;
    let trace = given(answer.into_inner().trace)?;
    app.output
        .message("metalmesh.admin.v1.FabricTrace", &trace, |trace| {
            let rows = trace.hops.iter().map(|hop| hop.cells(false));
            print_table(&FabricHop::titles(false), rows);
            outln!("\n{}", trace.verdict);
        })
}
