//! Rules of what nodes do: power, provisioning, maintenance, networks.
//!
//! Facts of Ironic 39.0.0, an Apache-2.0 project: names, check strings and calls of its API.

use super::checks::{
    MEMBER, OWNER_MEMBER, OWNER_MEMBER_OR_LESSEE_MANAGER, OWNER_READER, READER, SYSTEM_ADMIN,
    SYSTEM_MEMBER_OR_OWNER_MANAGER,
};
use super::shapes::node;
use crate::registered::RegisteredRule;

pub(super) const RULES: &[RegisteredRule] = &[
    node(
        "baremetal:node:validate",
        OWNER_MEMBER_OR_LESSEE_MANAGER,
        &["GET /nodes/{node_ident}/validate"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:set_maintenance",
        OWNER_MEMBER_OR_LESSEE_MANAGER,
        &["PUT /nodes/{node_ident}/maintenance"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:clear_maintenance",
        OWNER_MEMBER_OR_LESSEE_MANAGER,
        &["DELETE /nodes/{node_ident}/maintenance"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:get_boot_device",
        SYSTEM_MEMBER_OR_OWNER_MANAGER,
        &[
            "GET /nodes/{node_ident}/management/boot_device",
            "GET /nodes/{node_ident}/management/boot_device/supported",
        ],
    )
    .once("rule:is_admin or rule:is_observer"),
    node(
        "baremetal:node:set_boot_device",
        SYSTEM_MEMBER_OR_OWNER_MANAGER,
        &["PUT /nodes/{node_ident}/management/boot_device"],
    )
    .once_named("baremetal:node:set_maintenance", "rule:is_admin"),
    node(
        "baremetal:node:get_indicator_state",
        READER,
        &[
            "GET /nodes/{node_ident}/management/indicators/{component}/{indicator}",
            "GET /nodes/{node_ident}/management/indicators",
        ],
    )
    .once("rule:is_admin or rule:is_observer"),
    node(
        "baremetal:node:set_indicator_state",
        OWNER_MEMBER,
        &["PUT /nodes/{node_ident}/management/indicators/{component}/{indicator}"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:inject_nmi",
        SYSTEM_MEMBER_OR_OWNER_MANAGER,
        &["PUT /nodes/{node_ident}/management/inject_nmi"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:get_states",
        READER,
        &["GET /nodes/{node_ident}/states"],
    )
    .once("rule:is_admin or rule:is_observer"),
    node(
        "baremetal:node:set_power_state",
        MEMBER,
        &["PUT /nodes/{node_ident}/states/power"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:set_boot_mode",
        MEMBER,
        &["PUT /nodes/{node_ident}/states/boot_mode"],
    )
    .once_named("baremetal:node:set_power_state", "rule:is_admin"),
    node(
        "baremetal:node:set_secure_boot",
        MEMBER,
        &["PUT /nodes/{node_ident}/states/secure_boot"],
    )
    .once_named("baremetal:node:set_power_state", "rule:is_admin"),
    node(
        "baremetal:node:set_provision_state",
        OWNER_MEMBER_OR_LESSEE_MANAGER,
        &["PUT /nodes/{node_ident}/states/provision"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:set_provision_state:clean_steps",
        OWNER_MEMBER_OR_LESSEE_MANAGER,
        &["PUT /nodes/{node_ident}/states/provision"],
    ),
    node(
        "baremetal:node:set_provision_state:service_steps",
        OWNER_MEMBER_OR_LESSEE_MANAGER,
        &["PUT /nodes/{node_ident}/states/provision"],
    ),
    node(
        "baremetal:node:set_raid_state",
        OWNER_MEMBER,
        &["PUT /nodes/{node_ident}/states/raid"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:get_console",
        OWNER_MEMBER,
        &["GET /nodes/{node_ident}/states/console"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:set_console_state",
        OWNER_MEMBER,
        &["PUT /nodes/{node_ident}/states/console"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:vif:list",
        READER,
        &["GET /nodes/{node_ident}/vifs"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:vif:attach",
        OWNER_MEMBER_OR_LESSEE_MANAGER,
        &["POST /nodes/{node_ident}/vifs"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:vif:detach",
        OWNER_MEMBER_OR_LESSEE_MANAGER,
        &["DELETE /nodes/{node_ident}/vifs/{node_vif_ident}"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:traits:list",
        READER,
        &["GET /nodes/{node_ident}/traits"],
    )
    .once("rule:is_admin or rule:is_observer"),
    node(
        "baremetal:node:traits:set",
        SYSTEM_MEMBER_OR_OWNER_MANAGER,
        &[
            "PUT /nodes/{node_ident}/traits",
            "PUT /nodes/{node_ident}/traits/{trait}",
        ],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:traits:delete",
        SYSTEM_MEMBER_OR_OWNER_MANAGER,
        &[
            "DELETE /nodes/{node_ident}/traits",
            "DELETE /nodes/{node_ident}/traits/{trait}",
        ],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:bios:get",
        READER,
        &[
            "GET /nodes/{node_ident}/bios",
            "GET /nodes/{node_ident}/bios/{setting}",
        ],
    )
    .once("rule:is_admin or rule:is_observer"),
    node(
        "baremetal:node:disable_cleaning",
        SYSTEM_ADMIN,
        &["PATCH /nodes/{node_ident}"],
    )
    .once("rule:baremetal:node:update"),
    node(
        "baremetal:node:history:get",
        OWNER_READER,
        &[
            "GET /nodes/{node_ident}/history",
            "GET /nodes/{node_ident}/history/{event_ident}",
        ],
    )
    .once_named("baremetal:node:get", "rule:is_admin or rule:is_observer"),
    node(
        "baremetal:node:inventory:get",
        OWNER_READER,
        &["GET /nodes/{node_ident}/inventory"],
    )
    .once_named("baremetal:node:get", "rule:is_admin or rule:is_observer"),
    node(
        "baremetal:node:firmware:get",
        READER,
        &["GET /nodes/{node_ident}/firmware"],
    ),
    node(
        "baremetal:node:vmedia:attach",
        MEMBER,
        &["POST /nodes/{node_ident}/vmedia"],
    ),
    node(
        "baremetal:node:vmedia:detach",
        MEMBER,
        &["DELETE /nodes/{node_ident}/vmedia"],
    ),
    node(
        "baremetal:node:vmedia:get",
        READER,
        &["GET /nodes/{node_ident}/vmedia"],
    ),
    node(
        "baremetal:node:vendor_passthru",
        SYSTEM_ADMIN,
        &[
            "GET nodes/{node_ident}/vendor_passthru/methods",
            "GET nodes/{node_ident}/vendor_passthru?method={method_name}",
            "PUT nodes/{node_ident}/vendor_passthru?method={method_name}",
            "POST nodes/{node_ident}/vendor_passthru?method={method_name}",
            "PATCH nodes/{node_ident}/vendor_passthru?method={method_name}",
            "DELETE nodes/{node_ident}/vendor_passthru?method={method_name}",
        ],
    )
    .once("rule:is_admin"),
];
