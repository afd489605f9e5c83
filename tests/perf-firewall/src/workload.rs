//! The rules that are applied.

use std::fmt::Write as _;

use agents_firewall::admit::admit;
use agents_firewall::config::Config;
use agents_firewall::rule::RuleSet;
use anyhow::{Context as _, Result, ensure};

use crate::place::OUTSIDE;

/// Port that the traffic of the bench goes to.
pub(crate) const PORT: u16 = 5201;

const HEAD: &str = "sources:
  static:
    firewall:
      networks:
      - {networkID: tenant, networkType: private, vrf: 42, prefixes: [10.0.0.0/8]}
      - {networkID: internet, networkType: external, vrf: 104, prefixes: [0.0.0.0/0]}
    cwnp:
      egress:
";
const TAIL: &str = "controllers:
  firewall: {source: static}
  cwnp: {source: static}
";

/// A configuration with so many permits: each for one address and one TCP port, the last one for
/// the bench's own traffic. `version` moves the port of the permit `changed`.
pub(crate) fn text(permits: u32, changed: u32, version: u32) -> Result<String> {
    let mut text = HEAD.to_owned();
    for index in 0..permits.saturating_sub(1) {
        let (high, low) = (index / 250, index % 250 + 1);
        let port = if index == changed {
            10_000 + version % 50_000
        } else {
            443
        };
        let to = format!("198.{}.{}.{low}/32", 18 + high / 250, high % 250);
        writeln!(
            text,
            "      - {{name: permit-{index}, to: [{{cidr: {to}}}], ports: [{{port: {port}}}]}}"
        )?;
    }
    writeln!(
        text,
        "      - {{name: traffic, to: [{{cidr: {OUTSIDE}/32}}], ports: [{{port: {PORT}}}, {{protocol: UDP, port: {PORT}}}]}}"
    )?;
    text.push_str(TAIL);
    Ok(text)
}

/// The typed rules of a configuration.
pub(crate) fn rules(text: &str) -> Result<RuleSet> {
    let config = Config::parse(text).context("the bench's configuration")?;
    let admitted = admit(&config);
    ensure!(admitted.problems.is_empty(), "{:?}", admitted.problems);
    Ok(admitted.rules)
}
