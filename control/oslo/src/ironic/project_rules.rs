//! Rules of allocations and runbooks, which belong to projects.
//!
//! Facts of Ironic 39.0.0, an Apache-2.0 project: names, check strings and calls of its API.

use super::checks::{
    ALLOCATION_CREATOR, ALLOCATION_LEGACY, ALLOCATION_MEMBER, ALLOCATION_READER, ANY_READER,
    RUNBOOK_CREATOR, RUNBOOK_MANAGER, RUNBOOK_READER, SYSTEM_MEMBER, SYSTEM_READER,
};
use super::shapes::{PROJECT, allocation, every, own, runbook};
use crate::registered::RegisteredRule;

pub(super) const RULES: &[RegisteredRule] = &[
    allocation(
        "baremetal:allocation:get",
        ALLOCATION_READER,
        &[
            "GET /allocations/{allocation_id}",
            "GET /nodes/{node_ident}/allocation",
        ],
    )
    .once("rule:is_admin or rule:is_observer"),
    own(
        "baremetal:allocation:list",
        ANY_READER,
        &["GET /allocations"],
    )
    .once("rule:baremetal:allocation:get"),
    every(
        "baremetal:allocation:list_all",
        SYSTEM_READER,
        &["GET /allocations"],
    )
    .once("rule:baremetal:allocation:get and is_admin_project:True"),
    own(
        "baremetal:allocation:create",
        ALLOCATION_CREATOR,
        &["POST /allocations"],
    )
    .once("rule:is_admin and is_admin_project:True"),
    every(
        "baremetal:allocation:create_restricted",
        SYSTEM_MEMBER,
        &["POST /allocations"],
    )
    .once("rule:baremetal:allocation:create"),
    allocation(
        "baremetal:allocation:delete",
        ALLOCATION_MEMBER,
        &[
            "DELETE /allocations/{allocation_id}",
            "DELETE /nodes/{node_ident}/allocation",
        ],
    )
    .once("rule:is_admin"),
    allocation(
        "baremetal:allocation:update",
        ALLOCATION_MEMBER,
        &["PATCH /allocations/{allocation_id}"],
    )
    .once("rule:is_admin"),
    own(
        "baremetal:allocation:create_pre_rbac",
        ALLOCATION_LEGACY,
        &["PATCH /allocations/{allocation_id}"],
    )
    .for_scopes(PROJECT),
    runbook(
        "baremetal:runbook:get",
        RUNBOOK_READER,
        &["GET /runbooks/{runbook_ident}"],
    ),
    own("baremetal:runbook:list", ANY_READER, &["GET /runbooks"]),
    every(
        "baremetal:runbook:list_all",
        SYSTEM_READER,
        &["GET /runbooks"],
    ),
    own(
        "baremetal:runbook:create",
        RUNBOOK_CREATOR,
        &["POST /runbooks"],
    ),
    runbook(
        "baremetal:runbook:delete",
        RUNBOOK_MANAGER,
        &["DELETE /runbooks/{runbook_ident}"],
    ),
    runbook(
        "baremetal:runbook:update",
        RUNBOOK_MANAGER,
        &["PATCH /runbooks/{runbook_ident}"],
    ),
    runbook(
        "baremetal:runbook:update:public",
        SYSTEM_MEMBER,
        &["PATCH /runbooks/{runbook_ident}/public"],
    ),
    runbook(
        "baremetal:runbook:update:owner",
        SYSTEM_MEMBER,
        &["PATCH /runbooks/{runbook_ident}/owner"],
    ),
    runbook(
        "baremetal:runbook:use",
        RUNBOOK_MANAGER,
        &["PUT /nodes/{node_ident}/states/provision"],
    ),
];
