//! Rules of what belongs to the site: chassis, drivers, conductors, templates, calls of ramdisks.
//!
//! Facts of Ironic 39.0.0, an Apache-2.0 project: names, check strings and calls of its API.

use super::checks::{SYSTEM_ADMIN, SYSTEM_MEMBER, SYSTEM_READER};
use super::shapes::{SYSTEM, every, ramdisk};
use crate::registered::RegisteredRule;

pub(super) const RULES: &[RegisteredRule] = &[
    every("baremetal:shards:get", SYSTEM_READER, &["GET /shards"]),
    every(
        "baremetal:chassis:get",
        SYSTEM_READER,
        &[
            "GET /chassis",
            "GET /chassis/detail",
            "GET /chassis/{chassis_id}",
        ],
    )
    .for_scopes(SYSTEM)
    .once("rule:is_admin or rule:is_observer"),
    every("baremetal:chassis:create", SYSTEM_ADMIN, &["POST /chassis"])
        .for_scopes(SYSTEM)
        .once("rule:is_admin"),
    every(
        "baremetal:chassis:delete",
        SYSTEM_ADMIN,
        &["DELETE /chassis/{chassis_id}"],
    )
    .for_scopes(SYSTEM)
    .once("rule:is_admin"),
    every(
        "baremetal:chassis:update",
        SYSTEM_MEMBER,
        &["PATCH /chassis/{chassis_id}"],
    )
    .for_scopes(SYSTEM)
    .once("rule:is_admin"),
    every(
        "baremetal:driver:get",
        SYSTEM_READER,
        &["GET /drivers", "GET /drivers/{driver_name}"],
    )
    .for_scopes(SYSTEM)
    .once("rule:is_admin or rule:is_observer"),
    every(
        "baremetal:driver:get_properties",
        SYSTEM_READER,
        &["GET /drivers/{driver_name}/properties"],
    )
    .for_scopes(SYSTEM)
    .once("rule:is_admin or rule:is_observer"),
    every(
        "baremetal:driver:get_raid_logical_disk_properties",
        SYSTEM_READER,
        &["GET /drivers/{driver_name}/raid/logical_disk_properties"],
    )
    .for_scopes(SYSTEM)
    .once("rule:is_admin or rule:is_observer"),
    every(
        "baremetal:driver:vendor_passthru",
        SYSTEM_ADMIN,
        &[
            "GET drivers/{driver_name}/vendor_passthru/methods",
            "GET drivers/{driver_name}/vendor_passthru?method={method_name}",
            "PUT drivers/{driver_name}/vendor_passthru?method={method_name}",
            "POST drivers/{driver_name}/vendor_passthru?method={method_name}",
            "PATCH drivers/{driver_name}/vendor_passthru?method={method_name}",
            "DELETE drivers/{driver_name}/vendor_passthru?method={method_name}",
        ],
    )
    .for_scopes(SYSTEM)
    .once("rule:is_admin"),
    ramdisk(
        "baremetal:node:ipa_heartbeat",
        "",
        &["POST /heartbeat/{node_ident}"],
    )
    .for_scopes(&[])
    .once("rule:public_api"),
    ramdisk("baremetal:driver:ipa_lookup", "", &["GET /lookup"])
        .for_scopes(&[])
        .once("rule:public_api"),
    ramdisk(
        "baremetal:driver:ipa_continue_inspection",
        "",
        &["POST /continue_inspection"],
    )
    .for_scopes(&[]),
    every(
        "baremetal:conductor:get",
        SYSTEM_READER,
        &["GET /conductors", "GET /conductors/{hostname}"],
    )
    .once("rule:is_admin or rule:is_observer"),
    every("baremetal:events:post", SYSTEM_ADMIN, &["POST /events"])
        .for_scopes(SYSTEM)
        .once("rule:is_admin"),
    every(
        "baremetal:deploy_template:get",
        SYSTEM_READER,
        &[
            "GET /deploy_templates",
            "GET /deploy_templates/{deploy_template_ident}",
        ],
    )
    .once("rule:is_admin or rule:is_observer"),
    every(
        "baremetal:deploy_template:create",
        SYSTEM_ADMIN,
        &["POST /deploy_templates"],
    )
    .once("rule:is_admin"),
    every(
        "baremetal:deploy_template:delete",
        SYSTEM_ADMIN,
        &["DELETE /deploy_templates/{deploy_template_ident}"],
    )
    .once("rule:is_admin"),
    every(
        "baremetal:deploy_template:update",
        SYSTEM_ADMIN,
        &["PATCH /deploy_templates/{deploy_template_ident}"],
    )
    .once("rule:is_admin"),
    every(
        "baremetal:inspection_rule:get",
        SYSTEM_READER,
        &["GET /inspection_rules", "GET /inspection_rules/{rule_id}"],
    ),
    every(
        "baremetal:inspection_rule:list_all",
        SYSTEM_READER,
        &["GET /inspection_rules"],
    ),
    every(
        "baremetal:inspection_rule:create",
        SYSTEM_ADMIN,
        &["POST /inspection_rules"],
    ),
    every(
        "baremetal:inspection_rule:update",
        SYSTEM_ADMIN,
        &["PATCH /inspection_rules/{rule_id}"],
    ),
    every(
        "baremetal:inspection_rule:delete",
        SYSTEM_ADMIN,
        &[
            "DELETE /inspection_rules",
            "DELETE /inspection_rules/{rule_id}",
        ],
    ),
];
