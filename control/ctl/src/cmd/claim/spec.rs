//! The intent of a claim, from flags and from a file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use proto_public::metalmesh::tenant::v1::{
    ClaimFailureDomain, ClaimNetwork, ClaimReuse, ClaimSpec, ClaimToleration,
};

use super::select::selector;
use crate::files;
use crate::text::parse_duration;

/// Full name of the message that a file holds.
const MESSAGE: &str = "metalmesh.tenant.v1.ClaimSpec";

#[derive(Debug, Args)]
pub(crate) struct ClaimSpecArgs {
    /// File with the whole intent, YAML or JSON; flags change it. `-` is stdin.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Pool to look in; by default every pool that admits the project. Repeatable.
    #[arg(long = "pool", value_name = "POOL")]
    pools: Vec<String>,
    /// Term that the labels of the host must meet: a=b, a!=b, a, !a, "a in (b,c)", "a notin (b,c)".
    /// Repeatable.
    #[arg(long = "select", value_name = "TERM")]
    terms: Vec<String>,
    /// Taint that is no obstacle. Repeatable.
    #[arg(long = "toleration", value_name = "KEY[=VALUE]")]
    tolerations: Vec<String>,
    /// Failure domain of the host.
    #[arg(long, value_name = "NAME")]
    failure_domain: Option<String>,
    /// Take a host of another failure domain if there is none in this one.
    #[arg(long, requires = "failure_domain")]
    failure_domain_preferred: bool,
    /// Priority among the waiting claims, up to what the pool allows.
    #[arg(long)]
    priority: Option<u32>,
    /// Get back the host of an earlier claim with this key.
    #[arg(long, value_name = "KEY")]
    reuse_key: Option<String>,
    /// Wait for that host rather than take another one.
    #[arg(long, requires = "reuse_key")]
    reuse_required: bool,
    /// How long the host is kept for the next claim with the key, for example 30m.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "reuse_key")]
    reuse_keep: Option<Duration>,
    /// The wipe that is enough for the next claim with the key, down to what the pool allows: with
    /// metadata only partition tables and signatures go. By default what the pool asks for between two
    /// projects.
    #[arg(
        long,
        value_name = "LEVEL",
        value_parser = ["metadata", "erase", "sanitize"],
        ignore_case = true,
        requires = "reuse_key"
    )]
    reuse_wipe: Option<String>,
    /// Claims of the project with the same text are spread over racks.
    #[arg(long, value_name = "TEXT")]
    spread: Option<String>,
    /// Wait for another host if this one is taken away.
    #[arg(long)]
    rebind: bool,
    /// Image to install; without one the host is only bound.
    #[arg(long)]
    pub(super) image: Option<String>,
    /// Filesystem layout; by default the one that fits size and image.
    #[arg(long, value_name = "LAYOUT")]
    filesystem_layout: Option<String>,
    /// Host name of the installed system; by default the name of the claim, if it is one of a host.
    #[arg(long)]
    hostname: Option<String>,
    /// Network of the host, with addresses of the project after a colon: NETWORK[:IP,IP]. Repeatable.
    #[arg(long = "network", value_name = "NETWORK[:IP]")]
    networks: Vec<String>,
    /// File with a public SSH key. Repeatable.
    #[arg(long = "ssh-key", value_name = "FILE")]
    ssh_keys: Vec<PathBuf>,
    /// File with user data for Ignition or cloud-init, which the image must have; at most 24 KiB.
    #[arg(long, value_name = "FILE")]
    userdata: Option<PathBuf>,
}

impl ClaimSpecArgs {
    /// An intent with the changes that file and flags name.
    pub(super) fn over(self, base: ClaimSpec) -> Result<ClaimSpec> {
        let mut spec = match &self.file {
            Some(path) => from_file(path)?,
            None => base,
        };
        replace(&mut spec.pools, self.pools);
        if !self.terms.is_empty() {
            spec.selector = Some(selector(&self.terms)?);
        }
        replace(
            &mut spec.tolerations,
            self.tolerations
                .iter()
                .map(|flag| toleration(flag))
                .collect(),
        );
        if let Some(name) = self.failure_domain {
            spec.failure_domain = Some(ClaimFailureDomain {
                name,
                required: !self.failure_domain_preferred,
            });
        }
        spec.priority = self.priority.unwrap_or(spec.priority);
        if let Some(key) = self.reuse_key {
            let keep = self.reuse_keep.map(|keep| prost_types::Duration {
                seconds: i64::try_from(keep.as_secs()).unwrap_or(i64::MAX),
                nanos: 0,
            });
            spec.reuse = Some(ClaimReuse {
                key,
                required: self.reuse_required,
                wipe: self.reuse_wipe.unwrap_or_default().to_ascii_lowercase(),
                keep,
            });
        }
        spec.spread = self.spread.unwrap_or(spec.spread);
        spec.rebind |= self.rebind;
        spec.image = self.image.or(spec.image);
        spec.filesystem_layout = self.filesystem_layout.or(spec.filesystem_layout);
        spec.hostname = self.hostname.or(spec.hostname);
        let networks = self.networks.iter().map(|flag| network(flag));
        replace(&mut spec.networks, networks.collect());
        let keys = self.ssh_keys.iter();
        let keys = keys.map(|path| Ok(files::read(path)?.trim().to_owned()));
        replace(&mut spec.ssh_public_keys, keys.collect::<Result<_>>()?);
        if let Some(path) = &self.userdata {
            spec.user_data = Some(STANDARD.encode(files::read(path)?));
        }
        Ok(spec)
    }
}

/// Replaces a list, if a flag names any.
fn replace<T>(list: &mut Vec<T>, named: Vec<T>) {
    if !named.is_empty() {
        *list = named;
    }
}

fn from_file(path: &Path) -> Result<ClaimSpec> {
    parse(&files::read(path)?).with_context(|| format!("{}", path.display()))
}

fn parse(text: &str) -> Result<ClaimSpec> {
    let value = files::yaml(text)?;
    let message = proto_public::message(MESSAGE).context("unknown message type")?;
    let spec = proto_public::json::parse_strict(&message, value.to_string().as_bytes())?;
    Ok(spec.transcode_to()?)
}

fn toleration(flag: &str) -> ClaimToleration {
    let (key, value) = match flag.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (flag, None),
    };
    ClaimToleration {
        key: key.to_owned(),
        value,
    }
}

/// Parses `NETWORK` or `NETWORK:IP,IP`.
fn network(flag: &str) -> ClaimNetwork {
    let (network, ips) = flag.split_once(':').unwrap_or((flag, ""));
    let ips = ips.split(',').filter(|ip| !ip.is_empty());
    ClaimNetwork {
        network: network.to_owned(),
        ips: ips.map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_an_intent() {
        let text = "pools: [shared]\nselector:\n  matchLabels: {infra-kind: medium}\n\
                    poweredOn: true\nimage: debian-12\nnetworks:\n- network: private\n";
        let spec = parse(text).unwrap();
        assert_eq!(spec.pools, ["shared"]);
        let selector = spec.selector.unwrap();
        assert_eq!(selector.match_labels["infra-kind"], "medium");
        assert!(spec.powered_on);
        let error = parse("pool: shared\n").unwrap_err();
        assert!(error.to_string().contains("pool"), "{error:#}");
    }
}
