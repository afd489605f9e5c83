# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Objects as users see them."""
from __future__ import annotations

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import ENUMS, full, short_of
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import (
    camel, get_path, presented, set_path, snake, without_defaults)


@pytest.mark.parametrize("shown,field", [
    ("api_url", "apiUrl"), ("name", "name"), ("ip", "ip"),
    ("additional_announcable_cidrs", "additionalAnnouncableCidrs")])
def test_names(shown, field):
    assert (snake(field), camel(shown)) == (shown, field)


def test_names_with_several_capitals():
    assert [snake(name) for name in ("networkID", "toFQDNs", "loadBalancerIPs")] == [
        "network_id", "to_fqdns", "load_balancer_ips"]


def test_a_machine():
    machine = {
        "uuid": "u", "size": {"id": "c1"},
        "hardware": {"memory": "1024", "disks": [{"name": "/dev/sda", "size": "99"}]},
        "allocation": {"allocationType": "MACHINE_ALLOCATION_TYPE_FIREWALL",
                       "description": "IP_TYPE_STATIC",
                       "meta": {"labels": {"labels": {"camelCase": "7"}}}},
        "recentProvisioningEvents": {
            "events": [{"event": "MACHINE_PROVISIONING_EVENT_TYPE_PHONED_HOME"}]},
    }
    assert presented(machine) == {
        "uuid": "u", "size": {"id": "c1"},
        "hardware": {"memory": 1024, "disks": [{"name": "/dev/sda", "size": 99}]},
        "allocation": {"allocation_type": "firewall", "description": "IP_TYPE_STATIC",
                       "meta": {"labels": {"camelCase": "7"}}},
        "recent_provisioning_events": {"events": [{"event": "Phoned Home"}]},
    }


def test_a_label_that_is_called_labels():
    assert presented({"labels": {"labels": "x"}}) == {"labels": {"labels": "x"}}
    assert presented({"projectRoles": {"a": "PROJECT_ROLE_OWNER"}}) == {
        "project_roles": {"a": "owner"}}


def test_enums_are_unambiguous():
    for prefix, values in ENUMS.items():
        for short in values:
            assert short_of(full(prefix, short)) == short


def test_paths_and_defaults():
    made = {}
    set_path(made, "a.b", 1)
    set_path(made, "a.c", 2)
    assert made == {"a": {"b": 1, "c": 2}}
    assert [get_path(made, path) for path in ("a.b", "a.x", "a.b.c")] == [1, None, None]
    assert without_defaults({"a": 0, "b": [{"c": "", "d": 1}], "e": {"f": None}}) == {"b": [{"d": 1}]}
