//! Rules of nodes as records: create, read, change, delete.
//!
//! Facts of Ironic 39.0.0, an Apache-2.0 project: names, check strings and calls of its API.

use super::checks::{
    ANY_ADMIN_OR_SERVICE, ANY_READER, MEMBER, OWNER_ADMIN, OWNER_MEMBER,
    OWNER_MEMBER_OR_LESSEE_MANAGER, OWNER_READER, READER, SYSTEM_ADMIN, SYSTEM_ADMIN_OR_SERVICE,
    SYSTEM_MEMBER, SYSTEM_MEMBER_OR_OWNER_MANAGER, SYSTEM_READER,
};
use super::shapes::{SYSTEM, every, node, own};
use crate::registered::RegisteredRule;

pub(super) const RULES: &[RegisteredRule] = &[
    every(
        "baremetal:node:create",
        SYSTEM_ADMIN_OR_SERVICE,
        &["POST /nodes"],
    )
    .once("rule:is_admin"),
    own(
        "baremetal:node:create:self_owned_node",
        ANY_ADMIN_OR_SERVICE,
        &["POST /nodes"],
    ),
    own(
        "baremetal:node:list",
        ANY_READER,
        &["GET /nodes", "GET /nodes/detail"],
    )
    .once("rule:baremetal:node:get"),
    every(
        "baremetal:node:list_all",
        SYSTEM_READER,
        &["GET /nodes", "GET /nodes/detail"],
    )
    .once("rule:baremetal:node:get"),
    node("baremetal:node:get", READER, &["GET /nodes/{node_ident}"])
        .once("rule:is_admin or rule:is_observer"),
    every(
        "baremetal:node:get:filter_threshold",
        SYSTEM_READER,
        &["GET /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:get", "rule:is_admin or rule:is_observer"),
    node(
        "baremetal:node:get:last_error",
        OWNER_READER,
        &["GET /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:get", "rule:is_admin or rule:is_observer"),
    node(
        "baremetal:node:get:reservation",
        OWNER_READER,
        &["GET /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:get", "rule:is_admin or rule:is_observer"),
    node(
        "baremetal:node:get:driver_internal_info",
        OWNER_READER,
        &["GET /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:get", "rule:is_admin or rule:is_observer"),
    node(
        "baremetal:node:get:driver_info",
        OWNER_READER,
        &["GET /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:get", "rule:is_admin or rule:is_observer"),
    node(
        "baremetal:node:update:driver_info",
        OWNER_MEMBER,
        &["PATCH /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:update", "rule:is_admin"),
    node(
        "baremetal:node:update:properties",
        OWNER_MEMBER,
        &["PATCH /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:update", "rule:is_admin"),
    node(
        "baremetal:node:update:chassis_uuid",
        SYSTEM_ADMIN,
        &["PATCH /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:update", "rule:is_admin"),
    node(
        "baremetal:node:update:instance_uuid",
        OWNER_MEMBER,
        &["PATCH /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:update", "rule:is_admin"),
    node(
        "baremetal:node:update:lessee",
        OWNER_MEMBER,
        &["PATCH /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:update", "rule:is_admin"),
    node(
        "baremetal:node:update:owner",
        SYSTEM_MEMBER,
        &["PATCH /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:update", "rule:is_admin"),
    node(
        "baremetal:node:update:driver_interfaces",
        SYSTEM_MEMBER_OR_OWNER_MANAGER,
        &["PATCH /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:update", "rule:is_admin"),
    node(
        "baremetal:node:update:network_data",
        OWNER_MEMBER,
        &["PATCH /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:update", "rule:is_admin"),
    node(
        "baremetal:node:update:conductor_group",
        SYSTEM_MEMBER,
        &["PATCH /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:update", "rule:is_admin"),
    node(
        "baremetal:node:update:name",
        OWNER_MEMBER,
        &["PATCH /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:update", "rule:is_admin"),
    node(
        "baremetal:node:update:retired",
        OWNER_MEMBER,
        &["PATCH /nodes/{node_ident}"],
    )
    .once_named("baremetal:node:update", "rule:is_admin"),
    node(
        "baremetal:node:update",
        MEMBER,
        &["PATCH /nodes/{node_ident}"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:update_extra",
        MEMBER,
        &["PATCH /nodes/{node_ident}"],
    )
    .once("rule:baremetal:node:update"),
    node(
        "baremetal:node:update_instance_info",
        OWNER_MEMBER_OR_LESSEE_MANAGER,
        &["PATCH /nodes/{node_ident}"],
    )
    .once("rule:baremetal:node:update"),
    node(
        "baremetal:node:update_owner_provisioned",
        SYSTEM_ADMIN,
        &["PATCH /nodes/{node_ident}"],
    )
    .for_scopes(SYSTEM)
    .once("rule:is_admin"),
    node(
        "baremetal:node:delete",
        SYSTEM_ADMIN,
        &["DELETE /nodes/{node_ident}"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:node:delete:self_owned_node",
        OWNER_ADMIN,
        &["DELETE /nodes/{node_ident}"],
    ),
    node(
        "baremetal:node:update:shard",
        SYSTEM_ADMIN,
        &["PATCH /nodes/{node_ident}"],
    ),
    node(
        "baremetal:node:update:parent_node",
        SYSTEM_MEMBER,
        &["PATCH /nodes/{node_ident}"],
    ),
    node(
        "baremetal:node:update:disable_power_off",
        SYSTEM_ADMIN,
        &["PATCH /nodes/{node_ident}"],
    ),
];
