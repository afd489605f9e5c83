# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Machines as hosts."""
from __future__ import annotations

import pathlib
import re

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.hosts import (
    RESERVED, TakenNames, address, chosen_names, fixed_groups, host_name, host_variables, is_listed,
    own_groups, published_groups, stored, unprefixed)

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
A, B = ("00000000-0000-4000-8000-00000000000%d" % number for number in (1, 2))
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
    ("elsewhere", {}, None),
    ("internet", {"shown": "203.0.113.1"}, "203.0.113.1"),
    ("internet", {"u-1": "203.0.113.2"}, "203.0.113.2"),
    # A host name is the tenant's choice: it takes no address that is meant for another machine.
    ("internet", {"web-1": "203.0.113.3"}, "192.0.2.7")])
def test_addresses(external, fixed, expected):
    assert address(MACHINE, "shown", external, fixed) == expected


def test_variables_are_the_published_ones():
    found = host_variables(MACHINE, {"p-1": {"tenant": "acme"}}, "metal")
    assert found.pop("metalmesh_machine")["allocation"]["meta"]["labels"]["a"] == "b"
    assert found == {
        "ansible_user": "metal",
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
    assert published_groups(MACHINE) == ["p-1", "c1", "fra-1", "debian-12.1", "r1"]
    assert fixed_groups(MACHINE) == ["metal"]
    assert (fixed_groups(firewall), published_groups(firewall)) == (["metal-firewalls"], [])
    assert own_groups(firewall)[0] == "metalmesh_firewalls"
    assert own_groups(MACHINE) == [
        "metalmesh_machines", "metalmesh_project_p-1", "metalmesh_size_c1", "metalmesh_partition_fra-1",
        "metalmesh_image_debian-12.1", "metalmesh_rack_r1"]


@pytest.mark.parametrize("rack", ["control", "all", "a:&b", "x,y", "[1:3]", "\u2028"])
def test_no_rack_names_a_group_of_other_hosts(rack):
    group = own_groups(dict(MACHINE, rack=rack))[-1]
    assert group.startswith("metalmesh_rack_") and re.fullmatch("[A-Za-z0-9_.-]+", group)


def taken(hosts=(), groups=(), reserved=()):
    """Names that are there already."""
    return TakenNames({name: None for name in hosts}, groups, reserved)


@pytest.mark.parametrize("name", [
    "localhost", "LocalHost", "localhost.localdomain", "ip6-loopback", "127.0.0.1", "127.1", "2130706433",
    "0x7f.1", "::1", "10.0.0.1", "all", "ungrouped", "control", "metalmesh_machines", "gitlab", "control-1",
    "metal", "metal-firewalls",
    "databases", "-oProxyCommand=x", "a,b", "a:b", "*", "a b", "a\n", "", "x" * 300])
def test_dangerous_names_become_uuids(name):
    there = taken(["control-1"], ["databases"], ["gitlab"])
    names, warnings = chosen_names({A: name, B: "web-1"}, there)
    assert names == {A: A, B: "web-1"}
    assert len(warnings) == 1 and A in warnings[0] and "\n" not in warnings[0]


def test_a_name_of_two_machines_is_that_of_neither():
    names, warnings = chosen_names({A: "web-1", B: "web-1"}, taken())
    assert names == {A: A, B: B} and len(warnings) == 2


def test_a_machine_whose_uuid_is_taken_is_left_out():
    names, warnings = chosen_names({A: A, B: "localhost"}, taken([A, B]))
    assert names == {A: None, B: None} and "left out" in warnings[0]


def test_a_machine_of_an_earlier_file_is_the_same_host():
    there = TakenNames({A: A, "web-1": B}, {})
    assert chosen_names({A: A, B: "web-1"}, there) == ({A: A, B: "web-1"}, [])


@pytest.mark.parametrize("name,problem", [
    ("control", True), ("all", True), ("web-1", True), ("gitlab", True), ("a,b", True),
    ("metal", True), ("fra-1", False)])
def test_groups_that_a_remote_text_may_not_name(name, problem):
    found = taken(["web-1"], [], ["gitlab"]).problem_of_group(name)
    assert bool(found) == problem


def test_groups_of_the_playbooks_are_reserved():
    playbooks = pathlib.Path(__file__).parents[4].glob("playbooks/*.yml")
    found = re.findall(r"^ *(?:- )?hosts: (\w+)$", "\n".join(p.read_text() for p in playbooks), re.MULTILINE)
    assert found and set(found) <= RESERVED


@pytest.mark.parametrize("keyed,bare", [
    (None, None), ([{"key": "a", "prefix": "role"}], None), ([{"key": "a"}], "a"),
    ([{"key": "a", "prefix": "role"}, {"key": "b", "prefix": ""}], "b"),
    ([{"key": "a", "prefix": "c", "separator": ""}], "a")])
def test_keyed_groups_have_a_prefix(keyed, bare):
    assert unprefixed(keyed) == bare


def test_user_data_is_not_stored():
    assert "userdata" not in stored(with_allocation(userdata="c2VjcmV0"))["allocation"]
    assert stored(MACHINE) == MACHINE and stored(FREE) == FREE


def test_names():
    assert host_name(MACHINE) == "web-1"
    assert host_name(with_allocation(hostname="")) == "web"
    assert host_name(FREE) == "u-2"
