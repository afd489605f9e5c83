//! Rows of firewall rules.

use proto_public::metalmesh::admin::v1::FirewallRules;

use super::row;
use crate::output::TableRow;
use crate::text::{moment, or_dash};

row!(FirewallRules, "metalmesh.admin.v1.FirewallRules", |rules| [
    "TARGET": target(rules),
    "OWNER": rules.owner.clone(),
    "REVISION": rules.revision.to_string(),
    "OBJECTS": rules.objects.to_string(),
    "AUTHOR": rules.author.clone(),
    "AT": moment(rules.at.as_ref()),
    "COMMENT": comment(rules),
], wide [
    "PROJECT": rules.project.clone(),
]);

/// The object that a set is attached to: `firewall/ID` or `network/ID`.
pub(crate) fn target(rules: &FirewallRules) -> String {
    match rules.firewall.is_empty() {
        true => format!("network/{}", rules.network),
        false => format!("firewall/{}", rules.firewall),
    }
}

fn comment(rules: &FirewallRules) -> String {
    match rules.rolled_back_to {
        0 => or_dash(rules.comment.clone()),
        number if rules.comment.is_empty() => format!("back to {number}"),
        number => format!("back to {number}: {}", rules.comment),
    }
}
