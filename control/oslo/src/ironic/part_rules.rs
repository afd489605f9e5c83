//! Rules that other rules refer to, and the masks of passwords.
//!
//! Facts of Ironic 39.0.0, an Apache-2.0 project: names, check strings and calls of its API.

use super::shapes::secrets;
use crate::registered::RegisteredRule;

pub(super) const RULES: &[RegisteredRule] = &[
    RegisteredRule::part("admin_api", "role:admin or role:administrator"),
    RegisteredRule::part("public_api", "is_public_api:True"),
    secrets("show_password", "!"),
    secrets("show_instance_secrets", "!"),
    RegisteredRule::part(
        "service_role",
        "role:service and project_name:%(config.service_project_name)s",
    ),
    RegisteredRule::part(
        "is_member",
        "\
         (project_domain_id:default or project_domain_id:None) and (project_name:demo or \
         project_name:baremetal)",
    ),
    RegisteredRule::part(
        "is_observer",
        "rule:is_member and (role:observer or role:baremetal_observer)",
    ),
    RegisteredRule::part(
        "is_admin",
        "rule:admin_api or (rule:is_member and role:baremetal_admin)",
    ),
    RegisteredRule::part("is_node_owner", "project_id:%(node.owner)s"),
    RegisteredRule::part("is_node_lessee", "project_id:%(node.lessee)s"),
    RegisteredRule::part("is_allocation_owner", "project_id:%(allocation.owner)s"),
];
