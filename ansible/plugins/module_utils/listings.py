# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""What can be listed, and by what it is narrowed: for the modules that look, and for the lookup."""
from __future__ import annotations

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Choice, Flag
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import choices
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import (
    Filter, Listing, labels_filter, request_of)

API = "metalstack.api.v2."
ADMIN = "metalstack.admin.v2."
POOLS = "metalmesh.admin.v1.PoolService"
CLAIMS = "metalmesh.tenant.v1.ClaimService"
RULES = "metalmesh.admin.v1.FirewallRulesService"
OPERATOR_RULES = "metalmesh.admin.v1.OperatorRulesService"
UUID = {"type": "str", "aliases": ["uuid"]}
TEXT = {"type": "str"}
FLAG = {"type": "bool", "default": False}


def chosen(option, path, enum):
    """A filter by one value of an enum."""
    return Filter(option, path, Choice(enum), {"type": "str", "choices": choices(enum)})


def by_role(listing_name, service, key):
    """Lists everything with an admin role, and what is the caller's own without."""

    def fetch(client, params):
        prefix = ADMIN if client.is_admin else API
        request = request_of(LISTINGS[listing_name], params)
        return client.call(prefix + service, "List", request).get(key, [])

    return fetch


def members(client, params):
    """The members of a project or a tenant."""
    if params.get("project"):
        answer = client.call(API + "ProjectService", "Get", {"project": params["project"]})
        return answer.get("projectMembers", [])
    answer = client.call(API + "TenantService", "Get", {"login": params["tenant"]})
    return answer.get("tenantMembers", [])


def tokens(client, params):
    """The tokens of the caller, or of everybody."""
    prefix = ADMIN if params.get("all_users") else API
    request = request_of(LISTINGS["token"], params)
    return client.call(prefix + "TokenService", "List", request).get("tokens", [])


def networks(client, params):
    """The networks of a project, those that it may use, or all."""
    prefix = API if params.get("project") else ADMIN
    method = "ListBaseNetworks" if params.get("base") else "List"
    request = request_of(LISTINGS["network"], params)
    return client.call(prefix + "NetworkService", method, request).get("networks", [])


def images(client, params):
    """The images, or the newest one of an operating system."""
    request = request_of(LISTINGS["image"], params)
    if not params.get("latest"):
        return client.call(API + "ImageService", "List", request).get("images", [])
    query = {name: part for name, part in request["query"].items()
             if name in ("os", "classification")}
    newest = (client.find(API + "ImageService", "Latest", query) or {}).get("image")
    return [newest] if newest else []


def pools(client, params):
    """The pools with their hosts."""
    only = params.get("id")
    found = client.call(POOLS, "List").get("pools", [])
    hosts = client.call(POOLS, "ListHosts", {"pool": only or ""}).get("hosts", [])
    return [dict(pool, poolHosts=[host for host in hosts if host.get("pool") == pool["id"]])
            for pool in found if only in (None, pool["id"])]


def claims(client, params):
    """The claims of a project, or of all with their machines."""
    labels = {key: str(value) for key, value in (params.get("labels") or {}).items()}
    if params.get("project"):
        request = {"project": params["project"], "labels": labels}
        found = client.call(CLAIMS, "List", request).get("claims", [])
    else:
        all_of_them = client.call(POOLS, "ListClaims").get("claims", [])
        found = [dict(one.get("claim", {}), machine=one.get("machine", "")) for one in all_of_them]
        found = [one for one in found if labels.items() <= one.get("labels", {}).items()]
    return [one for one in found if params.get("name") in (None, one.get("name"))]


def firewall_rules(client, params):
    """The sets of rules with their contents."""
    project = params.get("project")
    service = RULES if project else OPERATOR_RULES
    scope = {"project": project} if project else {}
    found = []
    for one in client.call(service, "List", scope).get("rules", []):
        if any(params.get(part) not in (None, one.get(part)) for part in ("firewall", "network")):
            continue
        request = dict(scope, firewall=one.get("firewall", ""), network=one.get("network", ""),
                       owner=one.get("owner", ""))
        answer = client.find(service, "Get", request)
        if answer:
            found.append(dict(answer.get("rules", {}), firewalls=answer.get("firewalls", [])))
    return found


def machines(allocation_type=None):
    """Machines, or firewalls alone."""
    fixed = {"query.allocation.allocationType": allocation_type} if allocation_type else {}
    return Listing("machines", "machines", API + "MachineService", (
        Filter("project", "project"),
        Filter("id", "query.uuid", spec=UUID),
        Filter("name", "query.allocation.name"),
        Filter("hostname", "query.allocation.hostname"),
        Filter("image", "query.allocation.image"),
        chosen("allocation_type", "query.allocation.allocationType", "MACHINE_ALLOCATION_TYPE"),
        Filter("partition", "query.partition"),
        Filter("size", "query.size"),
        Filter("rack", "query.rack"),
        chosen("state", "query.state", "MACHINE_STATE"),
        Filter("waiting", "query.waiting", Flag(), {"type": "bool"}),
        labels_filter("query.allocation.labels"),
    ), all_service=ADMIN + "MachineService", fixed=fixed)


ONE_PLACE = {"required_one_of": [["project", "tenant"]],
             "mutually_exclusive": [["project", "tenant"]]}
# By kind, as the modules and the lookup call it.
LISTINGS = {
    "tenant": Listing("tenants", "tenants", API + "TenantService", (
        Filter("login", "query.login", spec={"type": "str", "aliases": ["id"]}),
        Filter("name", "query.name"),
        labels_filter(),
    ), fetch=by_role("tenant", "TenantService", "tenants")),
    "project": Listing("projects", "projects", API + "ProjectService", (
        Filter("id", "query.uuid", spec=UUID),
        Filter("name", "query.name"),
        Filter("tenant", "query.tenant"),
        labels_filter(),
    ), fetch=by_role("project", "ProjectService", "projects")),
    "member": Listing("members", "", "", fetch=members, conditions=ONE_PLACE,
                      options={"project": TEXT, "tenant": TEXT}),
    "token": Listing("tokens", "tokens", API + "TokenService", (
        Filter("id", "query.uuid", spec=UUID),
        Filter("user", "query.user"),
        Filter("description", "query.description"),
        labels_filter(),
    ), fetch=tokens, options={"all_users": FLAG}),
    "component": Listing(
        "components", "components", "metalmesh.admin.v1.ProjectComponentService",
        (Filter("project", "project"),), all_service=ADMIN + "ComponentService"),
    "machine": machines(),
    "firewall": machines("MACHINE_ALLOCATION_TYPE_FIREWALL"),
    "network": Listing("networks", "networks", API + "NetworkService", (
        Filter("project", "project"),
        Filter("id", "query.id"),
        Filter("name", "query.name"),
        Filter("partition", "query.partition"),
        chosen("type", "query.type", "NETWORK_TYPE"),
        Filter("parent_network", "query.parentNetwork"),
        labels_filter(),
    ), fetch=networks, options={"base": FLAG},
        conditions={"required_if": [["base", True, ["project"]]]}),
    "ip": Listing("ips", "ips", API + "IPService", (
        Filter("project", "project"),
        Filter("ip", "query.ip"),
        Filter("name", "query.name"),
        Filter("network", "query.network"),
        Filter("machine", "query.machine"),
        chosen("type", "query.type", "IP_TYPE"),
        labels_filter(),
    ), all_service=ADMIN + "IPService"),
    "size": Listing("sizes", "sizes", API + "SizeService", (
        Filter("id", "query.id"), Filter("name", "query.name"), labels_filter())),
    "partition": Listing("partitions", "partitions", API + "PartitionService", (
        Filter("id", "query.id"), labels_filter())),
    "filesystem_layout": Listing(
        "filesystem_layouts", "filesystemLayouts", API + "FilesystemService",
        (Filter("id", "id"),)),
    "image": Listing("images", "images", API + "ImageService", (
        Filter("id", "query.id"),
        Filter("name", "query.name"),
        Filter("os", "query.os"),
        chosen("classification", "query.classification", "IMAGE_CLASSIFICATION"),
        chosen("feature", "query.feature", "IMAGE_FEATURE"),
        labels_filter(),
    ), fetch=images, options={"latest": FLAG},
        conditions={"required_if": [["latest", True, ["os"]]]}),
    "switch": Listing("switches", "switches", ADMIN + "SwitchService", (
        Filter("id", "query.id"),
        Filter("partition", "query.partition"),
        Filter("rack", "query.rack"),
    )),
    "pool": Listing("pools", "", POOLS, fetch=pools, options={"id": TEXT}),
    "claim": Listing("claims", "", "", fetch=claims, options={
        "project": TEXT, "name": TEXT, "labels": {"type": "dict"}}),
    "firewall_rules": Listing("firewall_rules", "", "", fetch=firewall_rules, options={
        "project": TEXT, "firewall": TEXT, "network": TEXT}),
}
