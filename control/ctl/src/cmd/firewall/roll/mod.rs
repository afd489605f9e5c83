//! `metalmesh firewall roll`: replaces a firewall by a new one.
//!
//! Everything that a roll has done is in control, so that it goes on where it was interrupted, also
//! from another host. The old firewall stays until the routes of both were observed where they belong.

mod calls;
mod step;
mod wanted;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use proto_public::metalmesh::admin::v1::{FirewallReplacementStep, FirewallStatus};
use serde_json::json;
use tokio::time::{Instant, sleep};

use self::calls::RollCalls;
use self::step::{RollStep, RollView};
use crate::app::App;
use crate::cmd::machine::wait::POLL_INTERVAL;
use crate::text::parse_duration;

/// Default limit of a roll: an installation, and its first rules.
const TIMEOUT_DEFAULT: &str = "40m";
/// Time for which routes must have been observed in place before the old firewall is freed: FRR
/// announces a changed route map after five seconds at most.
const ROUTES_SETTLE: Duration = Duration::from_secs(10);

#[derive(Debug, Default, Args)]
pub(crate) struct RollArgs {
    /// The firewall to replace, by id or name.
    firewall: String,
    /// Image of the new one. Default: that of the firewall.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Size of the new one. Default: that of the firewall.
    #[arg(long, value_name = "SIZE")]
    size: Option<String>,
    /// Filesystem layout of the new one. Default: that of the firewall.
    #[arg(long, value_name = "LAYOUT")]
    filesystem_layout: Option<String>,
    /// Give the new one new addresses where the firewall has static ones, which stay with the project.
    #[arg(long)]
    new_addresses: bool,
    /// Free the firewall although it does not say that it is a standby; for one that is dead.
    #[arg(long)]
    force: bool,
    /// Take the roll back: the firewall gets its place again, and the new one is freed.
    #[arg(long, conflicts_with_all = ["image", "size", "filesystem_layout", "new_addresses", "force"])]
    undo: bool,
    /// Longest time to wait. The roll goes on when the command is run again.
    #[arg(long, default_value = TIMEOUT_DEFAULT, value_parser = parse_duration)]
    timeout: Duration,
}

pub(crate) async fn run(app: &App, args: &RollArgs) -> Result<()> {
    let calls = RollCalls::of(app, &args.firewall).await?;
    let Some(view) = calls.view().await? else {
        return gone(app, &calls, args).await;
    };
    match (args.undo, app.is_dry()) {
        (true, _) => undo(app, &calls, view).await,
        (false, true) => plan(app, &calls, &view, args).await,
        (false, false) => {
            let rolled = roll(&calls, args).await;
            if rolled.is_err() {
                advise(&calls.old);
            }
            app.output.one(&rolled?)
        }
    }
}

/// Says how a roll that stopped goes on, or is taken back.
fn advise(old: &str) {
    noteln!(
        "the roll stopped, and firewall {old} is still there; run the command again to go on, or \
         take it back: metalmesh firewall roll {old} --undo"
    );
}

/// Says that a firewall was replaced already.
async fn gone(app: &App, calls: &RollCalls<'_>, args: &RollArgs) -> Result<()> {
    let successor = calls.successor().await?;
    let successor = successor.filter(|_| !args.undo);
    let successor = successor.with_context(|| {
        let old = &calls.old;
        format!("{old} is no firewall of the project; see: metalmesh firewall ls")
    })?;
    noteln!("{} was replaced already", calls.old);
    app.output.one(&successor)
}

/// Goes from step to step; returns the new firewall.
async fn roll(calls: &RollCalls<'_>, args: &RollArgs) -> Result<FirewallStatus> {
    let start = Instant::now();
    let mut shown = String::new();
    let mut show = |text: String| {
        if text != shown {
            noteln!("{:>5}s  {text}", start.elapsed().as_secs());
            shown = text;
        }
    };
    let mut settled_since: Option<Instant> = None;
    loop {
        let view = calls.view().await?.context("the firewall is gone")?;
        let step = view.next_step(args.force);
        let id = view.new.as_ref().map(|new| new.firewall.clone());
        let id = id.unwrap_or_default();
        settled_since = settled_since.filter(|_| step == RollStep::Free);
        match step {
            RollStep::Allocate => {
                let made = calls.allocate(calls.wanted(args).await?).await?;
                show(format!("{}: allocated", made.uuid));
            }
            RollStep::Prepare => {
                calls.step(&id, FirewallReplacementStep::Prepare).await?;
                show(format!("{id}: has the rules of {}", calls.old));
            }
            RollStep::TakeOver => {
                // Rules that could not be carried over when they were written may be by now; then
                // the new one's kernel gets them first.
                calls.step(&id, FirewallReplacementStep::Prepare).await?;
                let view = calls.view().await?.context("the firewall is gone")?;
                if view.next_step(args.force) == RollStep::TakeOver {
                    calls.step(&id, FirewallReplacementStep::TakeOver).await?;
                    show(format!("{id}: takes the place of {}", calls.old));
                }
            }
            RollStep::Free => {
                let since = *settled_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= ROUTES_SETTLE {
                    calls.free(&calls.old).await?;
                    show(format!("{}: is being freed", calls.old));
                    return view.new.context("the new firewall is gone");
                }
                show(format!(
                    "{id}: is in its place; waiting for the routes to settle"
                ));
                sleep(POLL_INTERVAL).await;
            }
            RollStep::Done => return view.new.context("the new firewall is gone"),
            RollStep::Fail(reason) => bail!("{reason}"),
            RollStep::Wait(reason) => {
                show(reason.clone());
                if start.elapsed() >= args.timeout {
                    bail!("not complete after {}s: {reason}", args.timeout.as_secs());
                }
                sleep(POLL_INTERVAL).await;
            }
        }
    }
}

/// Takes a roll back.
async fn undo(app: &App, calls: &RollCalls<'_>, view: RollView) -> Result<()> {
    let old = &calls.old;
    let Some(new) = view.new else {
        bail!("firewall {old} is not being replaced; see: metalmesh firewall ls");
    };
    if view.old.freed {
        bail!(
            "firewall {old} is being freed already, and {} has its place; to get another firewall, \
             roll that one",
            new.firewall
        );
    }
    if !new.replaces.is_empty() {
        let step = FirewallReplacementStep::Undo;
        calls.step(&new.firewall, step).await?;
        noteln!("{old} has its place again");
    }
    calls.free(&new.firewall).await?;
    noteln!("{} is being freed", new.firewall);
    app.output.one(&view.old)
}

/// Prints what a roll would do. The server tries the allocation.
async fn plan(app: &App, calls: &RollCalls<'_>, view: &RollView, args: &RollArgs) -> Result<()> {
    let old = &view.old;
    let mut steps = Vec::new();
    match &view.new {
        Some(new) => steps.push(format!("go on with {} ({})", new.firewall, new.name)),
        None => {
            let request = calls.wanted(args).await?;
            let networks = request.networks.iter();
            let networks: Vec<&str> = networks.map(|network| &*network.network).collect();
            steps.push(format!(
                "allocate {}: image {}, size {}, partition {}, networks {}",
                request.name,
                request.image,
                request.size.as_deref().unwrap_or_default(),
                request.partition.as_deref().unwrap_or_default(),
                networks.join(", ")
            ));
            calls.allocate(request).await?;
        }
    }
    let own = old.sets.iter().filter(|set| set.firewall == old.firewall);
    steps.extend(own.map(|set| {
        let (owner, revision) = (&set.owner, set.revision);
        format!("give it the {owner}'s rules of the firewall, revision {revision}")
    }));
    steps.push(format!(
        "wait until it is healthy with its rules, and give it place {}",
        old.place
    ));
    steps.push(format!(
        "wait until both say that their routes are in place, and free {} ({})",
        old.firewall, old.name
    ));
    if app.output.is_table() {
        steps.iter().for_each(|step| outln!("{step}"));
        return Ok(());
    }
    let value = json!({ "firewall": old.firewall, "steps": steps });
    app.output.value(&value)
}
