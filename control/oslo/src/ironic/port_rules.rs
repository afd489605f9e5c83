//! Rules of ports, portgroups and volumes, which are parts of nodes.
//!
//! Facts of Ironic 39.0.0, an Apache-2.0 project: names, check strings and calls of its API.

use super::checks::{
    ANY_READER, OWNER_MEMBER_OR_LESSEE_MANAGER, READER, SYSTEM_ADMIN_OR_OWNER_MANAGER,
    SYSTEM_MEMBER_OR_MANAGER, SYSTEM_MEMBER_OR_OWNER_MANAGER, SYSTEM_READER,
    SYSTEM_READER_OR_ADMIN,
};
use super::shapes::{every, node, own};
use crate::registered::RegisteredRule;

pub(super) const RULES: &[RegisteredRule] = &[
    node(
        "baremetal:port:get",
        READER,
        &[
            "GET /ports/{port_id}",
            "GET /nodes/{node_ident}/ports",
            "GET /nodes/{node_ident}/ports/detail",
            "GET /portgroups/{portgroup_ident}/ports",
            "GET /portgroups/{portgroup_ident}/ports/detail",
        ],
    )
    .once("rule:is_admin or rule:is_observer"),
    own(
        "baremetal:port:list",
        ANY_READER,
        &["GET /ports", "GET /ports/detail"],
    )
    .once("rule:baremetal:port:get"),
    every(
        "baremetal:port:list_all",
        SYSTEM_READER,
        &["GET /ports", "GET /ports/detail"],
    )
    .once("rule:baremetal:port:get"),
    node(
        "baremetal:port:create",
        SYSTEM_ADMIN_OR_OWNER_MANAGER,
        &["POST /ports"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:port:delete",
        SYSTEM_ADMIN_OR_OWNER_MANAGER,
        &["DELETE /ports/{port_id}"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:port:update",
        SYSTEM_MEMBER_OR_OWNER_MANAGER,
        &["PATCH /ports/{port_id}"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:portgroup:get",
        READER,
        &[
            "GET /portgroups",
            "GET /portgroups/detail",
            "GET /portgroups/{portgroup_ident}",
            "GET /nodes/{node_ident}/portgroups",
            "GET /nodes/{node_ident}/portgroups/detail",
        ],
    )
    .once("rule:is_admin or rule:is_observer"),
    node(
        "baremetal:portgroup:create",
        SYSTEM_ADMIN_OR_OWNER_MANAGER,
        &["POST /portgroups"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:portgroup:delete",
        SYSTEM_ADMIN_OR_OWNER_MANAGER,
        &["DELETE /portgroups/{portgroup_ident}"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:portgroup:update",
        SYSTEM_MEMBER_OR_OWNER_MANAGER,
        &["PATCH /portgroups/{portgroup_ident}"],
    )
    .once("rule:is_admin"),
    own(
        "baremetal:portgroup:list",
        ANY_READER,
        &["GET /portgroups", "GET /portgroups/detail"],
    )
    .once_named(
        "baremetal:portgroup:get",
        "rule:is_admin or rule:is_observer",
    ),
    every(
        "baremetal:portgroup:list_all",
        SYSTEM_READER,
        &["GET /portgroups", "GET /portgroups/detail"],
    )
    .once_named(
        "baremetal:portgroup:get",
        "rule:is_admin or rule:is_observer",
    ),
    every(
        "baremetal:volume:list_all",
        SYSTEM_READER,
        &[
            "GET /volume/connectors",
            "GET /volume/targets",
            "GET /nodes/{node_ident}/volume/connectors",
            "GET /nodes/{node_ident}/volume/targets",
        ],
    )
    .once_named("baremetal:volume:get", "rule:is_admin or rule:is_observer"),
    own(
        "baremetal:volume:list",
        ANY_READER,
        &[
            "GET /volume/connectors",
            "GET /volume/targets",
            "GET /nodes/{node_ident}/volume/connectors",
            "GET /nodes/{node_ident}/volume/targets",
        ],
    )
    .once_named("baremetal:volume:get", "rule:is_admin or rule:is_observer"),
    node(
        "baremetal:volume:get",
        READER,
        &[
            "GET /volume",
            "GET /volume/connectors",
            "GET /volume/connectors/{volume_connector_id}",
            "GET /volume/targets",
            "GET /volume/targets/{volume_target_id}",
            "GET /nodes/{node_ident}/volume",
            "GET /nodes/{node_ident}/volume/connectors",
            "GET /nodes/{node_ident}/volume/targets",
        ],
    )
    .once("rule:is_admin or rule:is_observer"),
    node(
        "baremetal:volume:create",
        SYSTEM_MEMBER_OR_MANAGER,
        &["POST /volume/connectors", "POST /volume/targets"],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:volume:delete",
        SYSTEM_MEMBER_OR_MANAGER,
        &[
            "DELETE /volume/connectors/{volume_connector_id}",
            "DELETE /volume/targets/{volume_target_id}",
        ],
    )
    .once("rule:is_admin"),
    node(
        "baremetal:volume:update",
        OWNER_MEMBER_OR_LESSEE_MANAGER,
        &[
            "PATCH /volume/connectors/{volume_connector_id}",
            "PATCH /volume/targets/{volume_target_id}",
        ],
    )
    .once("rule:is_admin"),
    own(
        "baremetal:volume:view_target_properties",
        SYSTEM_READER_OR_ADMIN,
        &[
            "GET /volume/connectors/{volume_connector_id}",
            "GET /volume/targets/{volume_target_id}",
        ],
    )
    .once_named("baremetal:volume:update", "rule:is_admin"),
];
