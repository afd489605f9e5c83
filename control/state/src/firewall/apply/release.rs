//! The release of the firewalls' agent that the site wants.

use proto_errors::Error;
use proto_types::DigestAlgorithm;

use crate::firewall::command::{RemoveFirewallRelease, SetFirewallRelease};
use crate::firewall::entity::FirewallRelease;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

/// Longest version, bytes: the limit of releases. A longer one is refused.
const VERSION_LEN_MAX: usize = 64;
/// Longest URL, bytes: the limit of the agent. A longer one is refused.
const URL_LEN_MAX: usize = 2048;
/// Begin of every URL.
const SCHEME: &str = "https://";

/// Names the release.
pub(crate) fn set(tx: &mut Tx<'_>, op: &SetFirewallRelease) -> ApplyResult {
    check(op)?;
    Ok(Reply::FirewallRelease(tx.save(FirewallRelease {
        name: FirewallRelease::SITE.to_owned(),
        version: op.version.clone(),
        url: op.url.clone(),
        head_digest: op.head_digest.clone(),
        set_by: tx.actor.to_owned(),
        set_at: tx.now,
    })))
}

/// Names no release. Firewalls keep the program that they run.
pub(crate) fn remove(tx: &mut Tx<'_>, _op: &RemoveFirewallRelease) -> ApplyResult {
    let old = tx.delete::<FirewallRelease>(&FirewallRelease::SITE.to_owned());
    Ok(old.map_or(Reply::None, Reply::FirewallRelease))
}

/// Checks the form. The API has parsed the version and the URL.
fn check(op: &SetFirewallRelease) -> CheckResult {
    if !(1..=VERSION_LEN_MAX).contains(&op.version.len()) {
        let rule = format!("must have 1 to {VERSION_LEN_MAX} bytes");
        return Err(Error::invalid("release.version", rule));
    }
    if !op.url.starts_with(SCHEME) || op.url.len() > URL_LEN_MAX {
        let rule = format!("must begin with {SCHEME}, and have at most {URL_LEN_MAX} bytes");
        return Err(Error::invalid("release.url", rule));
    }
    if op.head_digest.algorithm() != DigestAlgorithm::Sha256 {
        return Err(Error::invalid("release.head_digest", "must be a SHA-256"));
    }
    Ok(())
}
