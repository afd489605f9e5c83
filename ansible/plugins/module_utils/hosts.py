# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Machines as hosts of an inventory: names, variables and groups. Pure.

Variables are those of metal-stack's published inventory. Host names and labels are the tenants' choice, a
rack is that of the agent of a leaf: no name that comes from them may stand for a host or a group of the
operator's.
"""
from __future__ import annotations

import re

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import short_of
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.labels import is_owned
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import (
    get_path, presented)

CHILD_TYPES = ("NETWORK_TYPE_CHILD", "NETWORK_TYPE_CHILD_SHARED")
FIREWALL = "MACHINE_ALLOCATION_TYPE_FIREWALL"
PHONED_HOME = "MACHINE_PROVISIONING_EVENT_TYPE_PHONED_HOME"
# Ids by which published groups are named, in their order.
GROUP_PATHS = ("allocation.project", "size.id", "partition.id", "allocation.image.id", "rack")
# What the names of the collection's own groups begin with, so that none of them is a role's or an operator's.
OWN_PREFIX = "metalmesh_"
# Groups of the collection's own, with what follows the prefix.
KEYED = (("project", "allocation.project"), ("size", "size.id"), ("partition", "partition.id"),
         ("image", "allocation.image.id"), ("rack", "rack"))
# Longest name of a host or a group, characters: that of a host name in DNS.
NAME_LEN_MAX = 253
# Names that neither a pattern of hosts nor a program takes for something else: no option, no list, no path.
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Numbers and dots are an address, also in its short forms such as 127.1 and 2130706433.
ADDRESS = re.compile(r"[0-9.]+|0x[0-9a-f.x]+")
# Names that stand for the controller, alone or with a domain.
CONTROLLER = ("localhost", "ip6-localhost", "ip6-loopback")
# Groups of Ansible's own, those of the hosts that the collection's playbooks work on, and those of the
# published inventory; "metal" is also the host name of machines that were given none.
RESERVED = frozenset(("all", "ungrouped", "control", "partition", "switches", "monitoring", "backup",
                      "metal", "metal-firewalls"))
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")


class TakenNames:
    """Names that no machine may have: those of other hosts and groups.

    `hosts` has the UUID of the machine that a host is by its name; None for other hosts.
    """

    def __init__(self, hosts, groups, reserved=()):
        self.hosts = hosts
        self.groups = groups
        self.reserved = {str(name).casefold() for name in reserved} | RESERVED

    def problem_of_host(self, name, uuid):
        """The reason why a machine may not have a name; None if it may."""
        if name in self.hosts and self.hosts[name] != uuid:
            return "a host of the inventory has it"
        return self._problem(name) or ("it is a group" if name in self.groups else None)

    def problem_of_group(self, name):
        """The reason why a remote text may not name a group; None if it may.

        The caller knows whether an existing group is one of machines.
        """
        return self._problem(name) or ("it is a host" if name in self.hosts else None)

    def _problem(self, name):
        plain = name.casefold()
        if len(name) > NAME_LEN_MAX or not NAME.fullmatch(name):
            return "it is no plain name"
        if plain in self.reserved or plain.startswith(OWN_PREFIX):
            return "it is reserved"
        if plain.split(".")[0] in CONTROLLER or ADDRESS.fullmatch(plain):
            return "it stands for another host"
        return None


def chosen_names(wanted, taken):
    """Names of machines, by their UUIDs, and a warning for each that is not the wanted one.

    `wanted` has the names by UUID. A machine whose wanted name is taken, or is that of a second machine, gets
    its UUID. None means that this is taken, too: the machine is left out.
    """
    counts = {}
    for name in wanted.values():
        counts[name] = counts.get(name, 0) + 1
    names, warnings = {}, []
    for uuid, name in wanted.items():
        problem = "two machines have it" if counts[name] > 1 else taken.problem_of_host(name, uuid)
        if problem and UUID.fullmatch(uuid) and not taken.problem_of_host(uuid, uuid):
            warnings.append("machine %s is not called %r: %s" % (uuid, name, problem))
            name, problem = uuid, None
        if problem:
            warnings.append("machine %s is left out: %r cannot be its name: %s" % (uuid, name, problem))
        names[uuid] = None if problem else name
    return names, warnings


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


def external_address(machine, external):
    """The first address of a machine in a network; None without one."""
    for network in get_path(machine, "allocation.networks") or []:
        if network.get("network") == external and network.get("ips"):
            return network["ips"][0]
    return None


def address(machine, name, external, fixed):
    """Where Ansible reaches the machine of a name: a given address, or the external one.

    None means by its name in the inventory. A host name is no address: a tenant chooses it, and another
    host would take the tasks that are meant for the machine.
    """
    given = fixed.get(name) or fixed.get(machine["uuid"])
    return given or external_address(machine, external)


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


def host_variables(machine, projects, user):
    """The variables of a host but for its address. `projects` has the projects by their UUIDs."""
    allocation = machine.get("allocation") or {}
    events = get_path(machine, "recentProvisioningEvents.events") or []
    project = projects.get(allocation.get("project"), {})
    firewall = is_firewall(machine)
    return {
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


def stored(machine):
    """The part of a machine that a cache may keep: without the user data, which may have secrets."""
    allocation = machine.get("allocation")
    if not isinstance(allocation, dict) or "userdata" not in allocation:
        return machine
    return dict(machine, allocation={key: value for key, value in allocation.items()
                                     if key != "userdata"})


def fixed_groups(machine):
    """The groups whose names are no remote text, as metal-stack's inventory calls them."""
    return ["metal-firewalls"] if is_firewall(machine) else ["metal"]


def published_groups(machine):
    """The other groups of the published inventory: bare ids. Firewalls are in none of them."""
    if is_firewall(machine):
        return []
    ids = [get_path(machine, path) for path in GROUP_PATHS]
    return [str(one) for one in ids if one]


def own_groups(machine):
    """The groups of the collection, named after what they are."""
    pairs = [(prefix, get_path(machine, path)) for prefix, path in KEYED]
    kind = "firewalls" if is_firewall(machine) else "machines"
    names = [kind] + ["%s_%s" % (prefix, value) for prefix, value in pairs if value]
    return [NOT_IN_NAMES.sub("_", OWN_PREFIX + name)[:NAME_LEN_MAX] for name in names]


def unprefixed(keyed_groups):
    """The key of the first keyed group without prefix and separator; None if all have both.

    Its names would be values of machines, such as labels, which tenants choose.
    """
    for keyed in keyed_groups or []:
        if not keyed.get("prefix") or not keyed.get("separator", "_"):
            return str(keyed.get("key"))
    return None
