use prost_reflect::FieldDescriptor;

/// Lists of our own messages that mean everything if they are left out, by the full name of their
/// message. Nobody writes an empty one on purpose: a template had nothing to fill in, or the values
/// were forgotten, and the rule would be for everything.
const ALL_IF_ABSENT: [(&str, &[&str]); 3] = [
    (
        "metalmesh.admin.v1.FirewallAllowedNetworks",
        &["egress", "ingress"],
    ),
    (
        "metalmesh.admin.v1.FirewallRule",
        &["from", "to", "to_fqdns", "ports"],
    ),
    (
        "metalmesh.admin.v1.FirewallServiceRule",
        &["load_balancer_source_ranges"],
    ),
];

/// `true` if a list means everything if it is left out.
pub(super) fn is_all_if_absent(field: &FieldDescriptor) -> bool {
    let message = field.parent_message();
    let mut known = ALL_IF_ABSENT.iter();
    known.any(|(name, fields)| *name == message.full_name() && fields.contains(&field.name()))
}
