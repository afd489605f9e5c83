# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Plans: what is done about an object, by what is wanted and what is there."""
from __future__ import annotations

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import (
    Choice, Items, Number, Tree)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.labels import (
    OWNER, OWNER_LABEL)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import (
    CREATE, DELETE, IGNORE, NOTHING, UPDATE, WARN, Field, create_request, labels_field,
    to_absent, to_present, update_request)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal

FIELDS = (
    Field("name", "name"),
    Field("image", "spec.image.id", create="image", update=None, fixed=WARN),
    Field("project", "project", update=None),
    Field("secret", "secret", update=None, fixed=IGNORE),
    Field("type", "type", Choice("IP_TYPE")),
    Field("dns", "dnsServers", Items("ip", "0.0.0.0")),
    Field("vrf", "vrf", Number()),
    Field("boot", "boot", Tree()),
)
ACTUAL = {"name": "a", "spec": {"image": {"id": "debian-12.1"}}, "project": "p",
          "type": "IP_TYPE_STATIC", "dnsServers": [{"ip": "10.0.0.1"}], "vrf": "7",
          "boot": {"imageUrl": "http://x", "commandline": ""},
          "meta": {"labels": {"labels": {"a": "1", "metalmesh.dev/x": "2"}}}}


def fields(purge=True):
    """The table, with labels."""
    return FIELDS + (labels_field({"purge_labels": purge}),)


@pytest.mark.parametrize("params,action,changed", [
    ({}, NOTHING, []),
    ({"name": "a", "type": "static", "vrf": 7}, NOTHING, []),
    ({"name": "b"}, UPDATE, ["name"]),
    ({"type": "ephemeral", "dns": []}, UPDATE, ["type", "dns"]),
    ({"secret": "other"}, NOTHING, []),
    ({"boot": {"image_url": "http://x"}}, NOTHING, []),
    ({"boot": {"image_url": "http://x", "commandline": ""}}, NOTHING, []),
    ({"boot": {"image_url": "http://y"}}, UPDATE, ["boot"]),
    ({"labels": {"a": "1"}}, NOTHING, []),
    ({"labels": {}}, UPDATE, ["labels"]),
    ({"labels": {"a": 1}}, NOTHING, []),
    ({"tags": ["a=1"]}, NOTHING, []),
    ({"labels": {"a": "2"}, "name": "b"}, UPDATE, ["name", "labels"]),
])
def test_present(params, action, changed):
    plan = to_present("thing", "a", fields(), params, ACTUAL)
    assert plan.action == action
    assert [one.option for one in plan.changed] == changed
    assert (plan.diff()["before"] == plan.diff()["after"]) == (action == NOTHING)


def test_what_is_fixed_warns_or_refuses():
    plan = to_present("thing", "a", fields(), {"image": "debian-13"}, ACTUAL)
    assert plan.action == NOTHING and "debian-12.1" in plan.warnings[0]
    with pytest.raises(Refusal, match="has project 'p', not 'q'"):
        to_present("thing", "a", fields(), {"project": "q"}, ACTUAL)


def test_a_value_that_is_none_names_its_option():
    with pytest.raises(Refusal, match="labels: .*no text"):
        to_present("thing", "a", fields(), {"labels": {"a": None}}, ACTUAL)


def test_create():
    params = {"name": "n", "image": "debian-12", "type": "static", "dns": ["10.0.0.1"],
              "labels": {"x": "y"}}
    plan = to_present("thing", "n", fields(), params, None)
    assert plan.action == CREATE and plan.diff()["before"] == {}
    assert create_request(fields(), plan.wanted, owned=True) == {
        "name": "n", "image": "debian-12", "type": "IP_TYPE_STATIC",
        "dnsServers": [{"ip": "10.0.0.1"}],
        "labels": {"labels": {"x": "y", OWNER_LABEL: OWNER}}}
    assert "labels" not in create_request(fields(), {"name": "n"})


@pytest.mark.parametrize("params,request_body", [
    ({"name": "b"}, {"name": "b"}),
    ({"dns": []}, {"dnsServers": [{"ip": "0.0.0.0"}]}),
    ({"labels": {"b": "2"}},
     {"labels": {"patch": {"remove": ["a"], "update": {"labels": {"b": "2"}}}}}),
    ({"labels": {}}, {"labels": {"patch": {"remove": ["a"]}}}),
    ({"boot": {"image_url": "http://y", "kernel_url": None}}, {"boot": {"imageUrl": "http://y"}}),
])
def test_update(params, request_body):
    plan = to_present("thing", "a", fields(), params, ACTUAL)
    assert update_request(plan, ACTUAL) == request_body


def test_labels_are_merged_without_a_purge():
    plan = to_present("thing", "a", fields(purge=False), {"labels": {"b": "2"}}, ACTUAL)
    assert plan.after["labels"] == {"a": "1", "b": "2", "metalmesh.dev/x": "2"}
    assert update_request(plan, ACTUAL)["labels"]["patch"]["remove"] == []


@pytest.mark.parametrize("actual,owned,force,action", [
    (None, {}, False, NOTHING),
    (ACTUAL, {OWNER_LABEL: OWNER}, False, DELETE),
    (ACTUAL, None, False, DELETE),
    (ACTUAL, {}, True, DELETE),
])
def test_absent(actual, owned, force, action):
    plan = to_absent("thing", "a", fields(), actual, owned, force)
    assert plan.action == action
    assert plan.diff()["after"] == {} or action == NOTHING


def test_an_object_of_others_is_not_removed():
    with pytest.raises(Refusal, match="was not made by Ansible"):
        to_absent("thing", "a", fields(), ACTUAL, {"a": "1"}, False)
