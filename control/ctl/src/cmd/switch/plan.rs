//! `metalmesh switch plan`.

use anyhow::{Result, bail};
use clap::{ArgGroup, Args};
use proto_public::metalmesh::admin::v1::fabric_service_get_plan_request::Change;
use proto_public::metalmesh::admin::v1::{
    FabricAllocation, FabricPortChange, FabricServiceGetPlanRequest,
};

use crate::app::App;

#[derive(Debug, Args)]
// Not the group of the struct: that has every argument in it, --network as well.
#[command(group(ArgGroup::new("change").required(true)
    .args(["allocate", "release", "port", "drain", "undrain"])))]
pub(crate) struct PlanArgs {
    /// Allocate this machine in the network of --network, with the image of --image.
    #[arg(long, value_name = "MACHINE", requires = "network")]
    allocate: Option<String>,
    /// Id of the child network for --allocate.
    #[arg(long, value_name = "NETWORK", requires = "allocate")]
    network: Option<String>,
    /// Id of the image for --allocate. Without it, an image without a label for its networking.
    #[arg(long, value_name = "IMAGE", requires = "allocate")]
    image: Option<String>,
    /// Release this machine.
    #[arg(long, value_name = "MACHINE")]
    release: Option<String>,
    /// Set a port up or down.
    #[arg(long, num_args = 3, value_names = ["SWITCH", "PORT", "up|down"])]
    port: Option<Vec<String>>,
    /// Drain this switch.
    #[arg(long, value_name = "SWITCH")]
    drain: Option<String>,
    /// Put this switch into service again.
    #[arg(long, value_name = "SWITCH")]
    undrain: Option<String>,
}

/// Prints the fields of the switches that a change would change.
pub(super) async fn run(app: &App, planned: PlanArgs) -> Result<()> {
    let change = change(app, planned).await?;
    let request = FabricServiceGetPlanRequest {
        change: Some(change),
    };
    let answer = app.client.fabric().get_plan(request).await?;
    let planned = answer.into_inner().planned;
    if planned.is_empty() && app.output.is_table() {
        noteln!("No switch would change.");
        return Ok(());
    }
    app.output.list(&planned)
}

async fn change(app: &App, planned: PlanArgs) -> Result<Change> {
    if let (Some(machine), Some(network)) = (&planned.allocate, planned.network) {
        let machine = app.machine_id(machine).await?;
        let image = planned.image.unwrap_or_default();
        let allocation = FabricAllocation {
            machine,
            network,
            image,
        };
        return Ok(Change::Allocate(allocation));
    }
    if let Some(machine) = &planned.release {
        return Ok(Change::Release(app.machine_id(machine).await?));
    }
    if let Some(port) = planned.port {
        return port_change(port).map(Change::Port);
    }
    match (planned.drain, planned.undrain) {
        (Some(switch), _) => Ok(Change::Drain(switch)),
        (None, Some(switch)) => Ok(Change::Undrain(switch)),
        (None, None) => bail!("name the change to plan; see: metalmesh switch plan --help"),
    }
}

fn port_change(words: Vec<String>) -> Result<FabricPortChange> {
    let Ok([switch, port, state]) = <[String; 3]>::try_from(words) else {
        bail!("--port needs SWITCH PORT up|down");
    };
    let up = match state.to_ascii_lowercase().as_str() {
        "up" => true,
        "down" => false,
        _ => bail!("{state:?} is not up or down"),
    };
    Ok(FabricPortChange { switch, port, up })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_three_words() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let down = port_change(words(&["leaf1", "swp1", "DOWN"])).unwrap();
        assert_eq!(
            (down.switch.as_str(), down.port.as_str(), down.up),
            ("leaf1", "swp1", false)
        );
        for bad in [&["leaf1", "swp1", "off"][..], &["leaf1", "swp1"], &[]] {
            assert!(port_change(words(bad)).is_err(), "{bad:?}");
        }
    }
}
