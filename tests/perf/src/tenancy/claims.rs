//! Claims among very many hosts: the time of the command that chooses a host, and of the one that
//! gives a host to the first of many that wait.

use std::collections::VecDeque;

use anyhow::{Context as _, Result, ensure};
use control_state::{ClaimSpec, LAYOUT_DEFAULT, WantedNetwork};
use tests_support::objects::text;

use super::claim_site::{ClaimSite, HeldClaim, NETWORK, RARE, asking};
use super::process_row::ProcessRow;
use crate::sample::Latencies;

/// Longest time of the command that creates a claim, milliseconds.
const CLAIM_MS_MAX: f64 = 2.0;
/// Longest time of the command that releases a host which many claims wait for, milliseconds.
const RELEASE_MS_MAX: f64 = 5.0;
/// Claims of each kind that count.
const CLAIMS: usize = 200;
/// Claims before them, which warm the caches up.
const WARM_UP: usize = 20;
/// Claims that wait for one host, each of a project of its own.
const WAITING: u128 = 1_000;
/// Releases of that host.
const RELEASES: usize = 200;
/// The project whose claims are measured, and the one that has the rare host at first.
const CLAIMANT: u128 = 1;
const HOLDER: u128 = 2;
/// Number of the first project that waits.
const FIRST_WAITING: u128 = 0x10_0000;

/// Measures both commands among so many hosts.
pub(super) fn measure(hosts: u32) -> Result<Vec<ProcessRow>> {
    let mut site = ClaimSite::new(hosts)?;
    // It has the rare host, so that no other claim takes it.
    let (holder, _) = site.claim(HOLDER, &asking(RARE))?;
    ensure!(site.is_bound(holder), "the rare host is not free");
    let mut rows = Vec::new();
    for (name, what, spec) in kinds() {
        let took = claims(&mut site, &spec).with_context(|| what.to_owned())?;
        let title = format!("{hosts} hosts: {what}, ms");
        rows.push(ProcessRow::of_commands(name, title, took, CLAIM_MS_MAX));
    }
    let took = releases(&mut site, holder).context("a release")?;
    let title = format!("a release with {WAITING} claims waiting, ms");
    rows.push(ProcessRow::of_commands(
        "release_ms",
        title,
        took,
        RELEASE_MS_MAX,
    ));
    Ok(rows)
}

/// The kinds of claims: key of the row, description, intent.
fn kinds() -> [(&'static str, &'static str, ClaimSpec); 3] {
    let install = ClaimSpec {
        image: Some(text("debian-12.0")),
        layout: Some(text(LAYOUT_DEFAULT)),
        networks: vec![WantedNetwork {
            network: text(NETWORK),
            ips: Vec::new(),
        }],
        ..asking("2")
    };
    let any = ClaimSpec {
        powered_on: true,
        ..ClaimSpec::default()
    };
    [
        ("claim_label_ms", "a claim by a label", asking("1")),
        ("claim_any_ms", "a claim of any host", any),
        ("claim_image_ms", "a claim with an image", install),
    ]
}

/// Claims of one kind, each of which gets a host at once.
fn claims(site: &mut ClaimSite, spec: &ClaimSpec) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    for number in 0..WARM_UP + CLAIMS {
        let (claim, took) = site.claim(CLAIMANT, spec)?;
        ensure!(site.is_bound(claim), "a claim got no host");
        let installs = spec.image.is_some();
        ensure!(
            installs == site.is_allocated(claim),
            "the machine of a claim is allocated without an image, or not with one"
        );
        if number >= WARM_UP {
            latencies.add(took);
        }
    }
    Ok(latencies)
}

/// Releases of the rare host, which goes to the next of the claims that wait. Their number is the
/// same before each release.
fn releases(site: &mut ClaimSite, mut holder: HeldClaim) -> Result<Latencies> {
    let rare = asking(RARE);
    let mut waiting = VecDeque::new();
    for number in 0..WAITING {
        let project = FIRST_WAITING + number;
        site.add_project(project)?;
        let (claim, _) = site.claim(project, &rare)?;
        ensure!(!site.is_bound(claim), "a claim that was to wait has a host");
        waiting.push_back(claim);
    }
    let mut latencies = Latencies::default();
    for _ in 0..RELEASES {
        let took = site.release(holder)?;
        latencies.add(took);
        let next = waiting.pop_front().context("no claim waits")?;
        ensure!(site.is_bound(next), "the first claim did not get the host");
        let (last, _) = site.claim(holder.project, &rare)?;
        waiting.push_back(last);
        holder = next;
    }
    Ok(latencies)
}
