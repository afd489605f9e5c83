# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Policies of pools and of their hosts."""
from __future__ import annotations

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Tree
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import Handler
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import (
    create_request, observed_values)

POOLS = "metalmesh.admin.v1.PoolService"
POLICIES = {"type": "list", "elements": "dict", "options": {
    "name": {"type": "str", "required": True},
    "allow_all": {"type": "bool", "default": False},
    "projects": {"type": "list", "elements": "str"},
    "pattern": {"type": "str"},
    "labels": {"type": "list", "elements": "dict", "options": {
        "name": {"type": "str", "required": True}, "value": {"type": "str"}}},
    "priority_max": {"type": "int", "default": 0},
}}
TREE = Tree()
RULES = {"type": "dict", "options": {
    "keys": {"type": "list", "elements": "str", "no_log": False},
    "prefixes": {"type": "list", "elements": "str"},
    "patterns": {"type": "list", "elements": "str"},
}}
METADATA = {"type": "dict", "options": {"labels": RULES, "annotations": RULES}}


class Metadata(Tree):
    """Rules of keys, whose order means nothing."""

    def same(self, wanted, observed):
        return super().same(_in_order(wanted), _in_order(observed))


def _in_order(value):
    if isinstance(value, dict):
        return {key: _in_order(item) for key, item in value.items()}
    return sorted(value) if isinstance(value, list) else value


class Replaced(Handler):
    """An object whose settings are always written whole: what a task leaves out is kept."""

    service = POOLS
    labels_read = "labels"
    plain_labels = True

    def whole(self, plan, actual):
        """The object's settings after the change."""
        values = {}
        if actual is not None:
            observed = observed_values(self.fields, actual)
            values = {option: value for option, value in observed.items() if value not in ("", 0, [], {})}
        values.update({one.option: plan.after.get(one.option, plan.wanted[one.option])
                       for one in self.fields if one.option in plan.wanted})
        return create_request(self.fields, values)

    def generation(self, actual):
        """The generation that the object is expected to have; 0 if there is to be none."""
        return actual.get("generation", 0) if actual else 0
