//! Creation and change of claims.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use proto_public::metalmesh::tenant::v1::{
    ClaimLabels, ClaimServiceCreateRequest, ClaimServiceUpdateRequest, ClaimSpec,
};

use super::spec::ClaimSpecArgs;
use super::{ClaimTarget, read};
use crate::app::App;
use crate::cmd::given;
use crate::text::pairs;

#[derive(Debug, Args)]
pub(crate) struct ClaimCreateArgs {
    /// Name of the claim, unique in the project.
    name: String,
    /// Set a label. Repeatable.
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// Go on with this paused claim of the project under the new name, instead of a new one.
    #[arg(long, value_name = "UUID")]
    adopt: Option<String>,
    /// Leave the host off once it is installed.
    #[arg(long)]
    off: bool,
    #[command(flatten)]
    spec: ClaimSpecArgs,
}

/// The power of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClaimPowerArg {
    On,
    Off,
}

#[derive(Debug, Args)]
pub(crate) struct ClaimUpdateArgs {
    #[command(flatten)]
    target: ClaimTarget,
    /// Replace all labels. Repeatable.
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// Take the image away: the host is wiped and stays with the claim.
    #[arg(long, conflicts_with = "image")]
    no_image: bool,
    /// Turn the host on or off.
    #[arg(long, ignore_case = true)]
    power: Option<ClaimPowerArg>,
    /// Pause the claim: nothing is done for it.
    #[arg(long)]
    pause: bool,
    /// End the pause.
    #[arg(long, conflicts_with = "pause")]
    resume: bool,
    #[command(flatten)]
    spec: ClaimSpecArgs,
}

pub(super) async fn create(app: &App, project: String, args: ClaimCreateArgs) -> Result<()> {
    let mut spec = args.spec.over(ClaimSpec {
        powered_on: true,
        ..ClaimSpec::default()
    })?;
    spec.powered_on &= !args.off;
    let request = ClaimServiceCreateRequest {
        project,
        name: args.name,
        labels: pairs(&args.labels)?,
        spec: Some(spec),
        adopt: args.adopt,
    };
    let answer = app.client.claims().create(request).await?.into_inner();
    app.output.one(&given(answer.claim)?)
}

/// Reads a claim, changes what the flags name, and writes it if nobody changed it meanwhile.
pub(super) async fn update(app: &App, project: String, args: ClaimUpdateArgs) -> Result<()> {
    let known = read(app, &project, &args.target.claim).await?;
    let before = known.spec.unwrap_or_default();
    let mut spec = args.spec.over(before.clone())?;
    if args.no_image {
        spec.image = None;
    }
    if let Some(power) = args.power {
        spec.powered_on = power == ClaimPowerArg::On;
    }
    spec.paused = (spec.paused || args.pause) && !args.resume;
    let labels = pairs(&args.labels)?;
    let labels = (!labels.is_empty()).then_some(ClaimLabels { labels });
    let is_changed = spec != before;
    if !is_changed && labels.is_none() {
        bail!("nothing to change; see: metalmesh claim update --help");
    }
    let request = ClaimServiceUpdateRequest {
        project,
        claim: known.uuid,
        expected_generation: Some(known.generation),
        expected_epoch: args.target.epoch,
        spec: is_changed.then_some(spec),
        labels,
    };
    let answer = app.client.claims().update(request).await?.into_inner();
    app.output.one(&given(answer.claim)?)
}
