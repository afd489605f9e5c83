# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Machines as hosts of an inventory: names, variables and groups. Pure.

Variables and groups are those of metal-stack's published inventory.
"""
from __future__ import annotations

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import short_of
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.labels import is_owned
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import (
    get_path, presented)

CHILD_TYPES = ("NETWORK_TYPE_CHILD", "NETWORK_TYPE_CHILD_SHARED")
FIREWALL = "MACHINE_ALLOCATION_TYPE_FIREWALL"
PHONED_HOME = "MACHINE_PROVISIONING_EVENT_TYPE_PHONED_HOME"
# Ids by which published groups are named, in their order.
GROUP_PATHS = ("allocation.project", "size.id", "partition.id", "allocation.image.id", "rack")
# Groups of the collection's own, with what their names begin with.
KEYED = (("project", "allocation.project"), ("size", "size.id"), ("partition", "partition.id"),
         ("image", "allocation.image.id"), ("rack", "rack"))


def labels_of(machine):
    """The labels of an allocation."""
    return get_path(machine, "allocation.meta.labels.labels") or {}


def is_listed(machine, managed_only):
    """True for machines that somebody has; with `managed_only` for those of Ansible."""
    return bool(machine.get("allocation")) and (not managed_only or is_owned(labels_of(machine)))


def is_firewall(machine):
    """True for a firewall."""
    return get_path(machine, "allocation.allocationType") == FIREWALL


def host_name(machine):
    """The host name of a machine."""
    allocation = machine.get("allocation") or {}
    return allocation.get("hostname") or allocation.get("name") or machine["uuid"]


def address(machine, external, fixed):
    """Where Ansible reaches a machine: a given address, the external one, or its name."""
    name = host_name(machine)
    if name in fixed:
        return fixed[name]
    for network in get_path(machine, "allocation.networks") or []:
        if network.get("network") == external and network.get("ips"):
            return network["ips"][0]
    return name


def internal_address(machine):
    """The first address in a network of a project."""
    for network in get_path(machine, "allocation.networks") or []:
        if network.get("networkType") in CHILD_TYPES and network.get("ips"):
            return network["ips"][0]
    return None


def events_of(machine):
    """The events of a machine, as the published inventory shows them."""
    events = get_path(machine, "recentProvisioningEvents.events") or []
    return [{"event": short_of(event.get("event", "")), "message": event.get("message", ""),
             "time": event.get("time")} for event in events]


def host_variables(machine, projects, external, fixed, user):
    """The variables of a host. `projects` has the projects by their UUIDs."""
    allocation = machine.get("allocation") or {}
    events = get_path(machine, "recentProvisioningEvents.events") or []
    project = projects.get(allocation.get("project"), {})
    firewall = is_firewall(machine)
    return {
        "ansible_host": address(machine, external, fixed),
        "ansible_user": user,
        "metal_allocated_at": get_path(allocation, "meta.createdAt"),
        "metal_allocation_succeeded": any(one.get("event") == PHONED_HOME for one in events),
        "metal_creator": allocation.get("createdBy"),
        "metal_id": machine["uuid"],
        "metal_name": allocation.get("name"),
        "metal_event_log": events_of(machine),
        "metal_hostname": allocation.get("hostname"),
        "metal_description": allocation.get("description"),
        "metal_rack_id": machine.get("rack"),
        "metal_partition": get_path(machine, "partition.id"),
        "metal_project": allocation.get("project"),
        "metal_size": get_path(machine, "size.id"),
        "metal_image": get_path(allocation, "image.id"),
        "metal_image_expiration": get_path(allocation, "image.expiresAt"),
        "metal_tenant": project.get("tenant"),
        "metal_is_firewall": firewall,
        "metal_is_machine": not firewall,
        "metal_internal_ip": internal_address(machine),
        "metal_tags": sorted("%s=%s" % pair for pair in labels_of(machine).items()),
        "metalmesh_machine": presented(machine),
    }


def published_groups(machine):
    """The groups of the published inventory. Firewalls are in one of their own, and in no other."""
    if is_firewall(machine):
        return ["metal-firewalls"]
    ids = [get_path(machine, path) for path in GROUP_PATHS]
    return [str(one) for one in ids if one] + ["metal"]


def own_groups(machine):
    """The groups of the collection, named after what they are."""
    pairs = [(prefix, get_path(machine, path)) for prefix, path in KEYED]
    kind = "metalmesh_firewalls" if is_firewall(machine) else "metalmesh_machines"
    return [kind] + ["%s_%s" % (prefix, value) for prefix, value in pairs if value]
