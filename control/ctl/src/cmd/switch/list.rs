//! `metalmesh switch ls`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{Switch, SwitchQuery, SwitchReplaceMode};
use proto_public::metalmesh::admin::v1::{FabricServiceListRequest, FabricSummary};
use serde_json::Value;

use super::fabric::service_state;
use crate::app::App;
use crate::output::{TableRow, message_json, print_table, to_json};

/// Full name of the message in the contract.
const SUMMARY: &str = "metalmesh.admin.v1.FabricSummary";
/// Columns of the public switch that come before those of its fabric.
const FIRST: usize = 3;

/// Lists switches of the public contract with their service.
pub(super) async fn run(app: &App, partition: Option<String>) -> Result<()> {
    let request = FabricServiceListRequest {
        partition: partition.clone().unwrap_or_default(),
    };
    let query = SwitchQuery {
        partition,
        ..Default::default()
    };
    let answer = app.client.fabric().list(request).await?;
    let fabric = answer.into_inner().switches.into_iter();
    let fabric = fabric.map(|summary| (summary.id.clone(), summary));
    let fabric: BTreeMap<String, FabricSummary> = fabric.collect();
    let request = admin::SwitchServiceListRequest { query: Some(query) };
    let answer = app.client.admin_switches().list(request).await?;
    let switches = answer.into_inner().switches;
    if !app.output.is_table() {
        let shown = switches.iter().map(|switch| json(switch, &fabric));
        return app
            .output
            .value(&Value::Array(shown.collect::<Result<_>>()?));
    }
    let wide = app.output.is_wide();
    let mut titles = Switch::titles(wide);
    titles.splice(FIRST..FIRST, ["service", "agent", "bgp up", "differs"]);
    let rows = switches.iter().map(|switch| {
        let mut row = switch.cells(wide);
        let is_replaced = switch.replace_mode() == SwitchReplaceMode::Replace;
        row.splice(FIRST..FIRST, cells(fabric.get(&switch.id), is_replaced));
        row
    });
    print_table(&titles, rows);
    Ok(())
}

/// The switch, and its summary in `fabric`.
fn json(switch: &Switch, fabric: &BTreeMap<String, FabricSummary>) -> Result<Value> {
    let mut shown = to_json(switch)?;
    let object = shown.as_object_mut().context("a switch is an object")?;
    if let Some(summary) = fabric.get(&switch.id) {
        object.insert("fabric".to_owned(), message_json(SUMMARY, summary)?);
    }
    Ok(shown)
}

fn cells(fabric: Option<&FabricSummary>, is_replaced: bool) -> [String; 4] {
    // Registered between the two calls.
    let Some(fabric) = fabric else {
        return ["-"; 4].map(str::to_owned);
    };
    let agent = match fabric.connected {
        Some(true) => "connected",
        Some(false) => "NOT connected",
        None => "-",
    };
    let bgp = match fabric.sessions {
        0 => "-".to_owned(),
        all => format!("{}/{all}", fabric.sessions_up),
    };
    let mut service = service_state(fabric.drained_at.as_ref(), fabric.draining);
    if is_replaced {
        service.push_str(", to be replaced");
    }
    [
        service,
        agent.to_owned(),
        bgp,
        fabric.differences.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_what_needs_care() {
        let quiet = FabricSummary::default();
        assert_eq!(cells(Some(&quiet), false), ["in service", "-", "-", "0"]);
        assert_eq!(cells(None, true), ["-"; 4]);
        let [service, ..] = cells(Some(&quiet), true);
        assert_eq!(service, "in service, to be replaced");
        let busy = FabricSummary {
            drained_at: Some(prost_types::Timestamp::default()),
            connected: Some(false),
            differences: 2,
            sessions: 3,
            sessions_up: 1,
            ..quiet
        };
        let [service, agent, bgp, differs] = cells(Some(&busy), false);
        assert!(service.starts_with("draining since"), "{service}");
        assert_eq!([agent, bgp, differs], ["NOT connected", "1/3", "2"]);
    }
}
