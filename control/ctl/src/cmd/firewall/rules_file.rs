//! Files with rules: the parts `firewall`, `cwnp` and `service` of the agent's static source.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use proto_public::metalmesh::admin::v1::FirewallRuleContent;
use proto_public::{FieldFault, FieldStep, path_text};
use serde_json::Value;

use crate::files;

/// Reads a file, YAML or JSON.
///
/// # Errors
/// It cannot be read, or has a field that rules do not have.
pub(super) fn read(path: &Path) -> Result<FirewallRuleContent> {
    parse(&files::read(path)?).with_context(|| format!("{}", path.display()))
}

fn parse(text: &str) -> Result<FirewallRuleContent> {
    let whole = files::yaml(text)?;
    // A file of the agent itself may be applied as it is.
    let rules = match whole.pointer("/sources/static") {
        Some(rules) => rules.clone(),
        None => whole,
    };
    if !rules.is_object() {
        bail!("the file has no rules; it begins with firewall:, cwnp: or service:");
    }
    if rules.pointer("/firewall/networks").is_some() {
        bail!(
            "firewall.networks: control knows the networks of a firewall, with their VRFs, prefixes \
             and NAT; remove it"
        );
    }
    let message = proto_public::message("metalmesh.admin.v1.FirewallRuleContent");
    let message = message.context("unknown message type")?;
    // The parser takes a field without a value for one that is left out, which may mean everything.
    if let Some(fault) = FieldFault::find_strict(&message, &rules) {
        bail!(described(&rules, &fault));
    }
    let content = proto_public::json::parse_strict(&message, rules.to_string().as_bytes())?;
    Ok(content.transcode_to()?)
}

/// The object with its name, the field and the problem: `cwnp.egress[1] "web": ports[0].port: ...`.
fn described(rules: &Value, fault: &FieldFault) -> String {
    let place = fault
        .path
        .iter()
        .position(|step| matches!(step, FieldStep::Index(_)));
    let (object, field) = fault.path.split_at(place.map_or(0, |place| place + 1));
    let named = object.iter().try_fold(rules, |value, step| match step {
        FieldStep::Field(name) => value.get(name),
        FieldStep::Index(index) => value.get(index),
    });
    let name = named.and_then(|object| object.get("name")?.as_str());
    let mut text = path_text(object);
    if let Some(name) = name {
        text += &format!(" {name:?}");
    }
    for part in [path_text(field), fault.reason.clone()] {
        if !text.is_empty() && !part.is_empty() {
            text += ": ";
        }
        text += &part;
    }
    text + "; write it as docs/reference/firewall.md shows it"
}

#[cfg(test)]
mod tests {
    use super::parse;

    const FILE: &str = "
firewall:
  rateLimits: [{networkID: internet, rate: 100}]
  egressRules: [{networkID: internet, ips: [203.0.113.50]}]
  rules: [{name: no-smtp, action: drop, direction: egress, ports: [{port: 25}]}]
cwnp:
  egress:
  - {name: web, to: [{cidr: 0.0.0.0/0, except: [192.0.2.0/24]}], ports: [{port: 80, endPort: 81}]}
  - {name: names, toFQDNs: [{matchPattern: '*.example.com'}]}
service:
- {name: shop, loadBalancerIPs: [203.0.113.7], ports: [{port: 443}]}
";

    #[test]
    fn the_parts_of_a_static_source() {
        let content = parse(FILE).unwrap();
        let firewall = content.firewall.unwrap();
        assert_eq!(firewall.rate_limits[0].network_id, "internet");
        assert_eq!(firewall.egress_rules[0].ips, ["203.0.113.50"]);
        assert_eq!(firewall.rules[0].action.as_deref(), Some("drop"));
        let egress = content.cwnp.unwrap().egress;
        assert_eq!(egress[0].to[0].except, ["192.0.2.0/24"]);
        assert_eq!(egress[0].ports[0].end_port, Some(81));
        let pattern = egress[1].to_fqdns[0].match_pattern.as_deref();
        assert_eq!(pattern, Some("*.example.com"));
        assert_eq!(content.service[0].load_balancer_ips, ["203.0.113.7"]);
    }

    #[test]
    fn a_whole_file_of_the_agent() {
        let indented = FILE.replace('\n', "\n    ");
        let whole = format!("sources:\n  static:{indented}\ncontrollers: {{}}\n");
        assert_eq!(parse(&whole).unwrap(), parse(FILE).unwrap());
    }

    #[test]
    fn mistakes_are_refused_with_the_reason() {
        let deep = "[".repeat(250_000);
        let dashes = "- ".repeat(65);
        for (text, wanted) in [
            ("cwnp: {egres: []}", "cwnp.egres: "),
            ("firewall: {networks: []}", "control knows the networks"),
            (
                "cwnp: {egress: [{}, {name: web, ports: [{port: http}]}]}",
                "cwnp.egress[1] \"web\": ports[0].port: invalid digit",
            ),
            (
                "cwnp: {egress: [{ports: [{port: http}]}]}",
                "cwnp.egress[0]: ports[0].port: ",
            ),
            ("service: [7]", "service[0]: "),
            // Left out, it would be for everything.
            (
                "cwnp:\n  egress:\n  - name: web\n    ports:\n    to:\n",
                "cwnp.egress[0] \"web\": ports: it has no value; give it one, or remove it",
            ),
            (
                "cwnp: {egress: [{name: web, to: []}]}",
                "cwnp.egress[0] \"web\": to: the list is empty; name",
            ),
            (
                "cwnp: {egress: [{name: web, ports: [{protocol: UDP, port: }]}]}",
                "cwnp.egress[0] \"web\": ports[0].port: it has no value",
            ),
            ("firewall: {rules: }", "firewall.rules: it has no value"),
            (
                "firewall: {allowedNetworks: {egress: []}}",
                "firewall.allowedNetworks.egress: the list is empty",
            ),
            ("sources: {static: }", "begins with"),
            ("- 1", "begins with"),
            (deep.as_str(), "nested deeper than 64 levels, by brackets"),
            (dashes.as_str(), "write each level on a line of its own"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(wanted), "{error}");
        }
    }
}
