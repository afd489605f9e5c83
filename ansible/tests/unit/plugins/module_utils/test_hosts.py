# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Machines as hosts."""
from __future__ import annotations

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.hosts import (
    address, host_name, host_variables, is_listed, own_groups, published_groups)

MACHINE = {
    "uuid": "u-1", "rack": "r1", "partition": {"id": "fra-1"}, "size": {"id": "c1"},
    "allocation": {
        "name": "web", "hostname": "web-1", "project": "p-1", "createdBy": "maya",
        "allocationType": "MACHINE_ALLOCATION_TYPE_MACHINE",
        "image": {"id": "debian-12.1", "expiresAt": "2027-01-01T00:00:00Z"},
        "meta": {"createdAt": "2026-01-01T00:00:00Z",
                 "labels": {"labels": {"ci.metal-stack.io/manager": "ansible", "a": "b"}}},
        "networks": [
            {"network": "private", "networkType": "NETWORK_TYPE_CHILD", "ips": ["10.0.0.4"]},
            {"network": "internet", "networkType": "NETWORK_TYPE_EXTERNAL", "ips": ["192.0.2.7"]}]},
    "recentProvisioningEvents": {"events": [
        {"event": "MACHINE_PROVISIONING_EVENT_TYPE_PHONED_HOME", "time": "t", "message": "m"}]},
}
FREE = {"uuid": "u-2", "partition": {"id": "fra-1"}}


def with_allocation(**changes):
    """The machine with other facts of its allocation."""
    return dict(MACHINE, allocation=dict(MACHINE["allocation"], **changes))


@pytest.mark.parametrize("machine,managed_only,listed", [
    (MACHINE, True, True), (MACHINE, False, True), (FREE, False, False),
    (with_allocation(meta={}), True, False), (with_allocation(meta={}), False, True)])
def test_which_are_listed(machine, managed_only, listed):
    assert is_listed(machine, managed_only) == listed


@pytest.mark.parametrize("external,fixed,expected", [
    ("internet", {}, "192.0.2.7"),
    ("elsewhere", {}, "web-1"),
    ("internet", {"web-1": "203.0.113.1"}, "203.0.113.1")])
def test_addresses(external, fixed, expected):
    assert address(MACHINE, external, fixed) == expected


def test_variables_are_the_published_ones():
    found = host_variables(MACHINE, {"p-1": {"tenant": "acme"}}, "internet", {}, "metal")
    assert found.pop("metalmesh_machine")["allocation"]["meta"]["labels"]["a"] == "b"
    assert found == {
        "ansible_host": "192.0.2.7", "ansible_user": "metal",
        "metal_allocated_at": "2026-01-01T00:00:00Z", "metal_allocation_succeeded": True,
        "metal_creator": "maya", "metal_id": "u-1", "metal_name": "web",
        "metal_event_log": [{"event": "Phoned Home", "message": "m", "time": "t"}],
        "metal_hostname": "web-1", "metal_description": None, "metal_rack_id": "r1",
        "metal_partition": "fra-1", "metal_project": "p-1", "metal_size": "c1",
        "metal_image": "debian-12.1", "metal_image_expiration": "2027-01-01T00:00:00Z",
        "metal_tenant": "acme", "metal_is_firewall": False, "metal_is_machine": True,
        "metal_internal_ip": "10.0.0.4",
        "metal_tags": ["a=b", "ci.metal-stack.io/manager=ansible"]}


def test_groups():
    firewall = with_allocation(allocationType="MACHINE_ALLOCATION_TYPE_FIREWALL")
    assert published_groups(MACHINE) == ["p-1", "c1", "fra-1", "debian-12.1", "r1", "metal"]
    assert published_groups(firewall) == ["metal-firewalls"]
    assert own_groups(firewall)[0] == "metalmesh_firewalls"
    assert own_groups(MACHINE) == ["metalmesh_machines", "project_p-1", "size_c1",
                                   "partition_fra-1", "image_debian-12.1", "rack_r1"]


def test_names():
    assert host_name(MACHINE) == "web-1"
    assert host_name(with_allocation(hostname="")) == "web"
    assert host_name(FREE) == "u-2"
