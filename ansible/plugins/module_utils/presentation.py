# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Objects of the API as users see them, and what users write as the API takes it.

JSON of the API has camelCase names, long names of enum values, 64-bit numbers as text, and labels
in a message of their own. Users see snake_case names, short values, numbers, and a plain
dictionary of labels. Keys of maps, such as labels, are data and stay as they are.
"""
from __future__ import annotations

import re

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import short_of

# Fields that are maps: their keys are data.
MAPS = frozenset(("labels", "matchLabels", "projectRoles", "tenantRoles", "machineRoles", "images",
                  "partitionsHealth"))
# Fields with enum values; texts of other fields are never taken for one.
ENUM_FIELDS = frozenset(("type", "natType", "state", "role", "adminRole", "infraRole", "features",
                         "classification", "format", "gptType", "lvmType", "level",
                         "allocationType", "liveliness", "event", "replaceMode", "vendor",
                         "desired", "actual", "networkType", "kind", "status", "tokenType",
                         "addressFamily", "protocol", "bgpState", "projectRoles", "tenantRoles",
                         "machineRoles"))
# Fields with 64-bit numbers, which JSON has as text.
NUMBER_FIELDS = frozenset((
    "generation", "memory", "vrf", "revision", "epoch", "observedGeneration", "min", "max",
    "speed", "availableIps", "usedIps", "availablePrefixes", "usedPrefixes", "appliedRevision",
    "leader", "term", "answeredBy", "behind", "total", "waiting", "other", "allocated",
    "allocatable", "free", "unavailable", "faulty", "reservations", "phonedHome"))
# Lists whose entries have a `size` in bytes; elsewhere `size` is an id.
SIZED_LISTS = frozenset(("disks", "partitions", "logicalVolumes"))
CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
NAMES = {"networkID": "network_id", "toFQDNs": "to_fqdns", "loadBalancerIPs": "load_balancer_ips"}


def snake(name):
    """camelCase to snake_case."""
    return NAMES.get(name) or CAPITAL.sub("_", name).lower()


def camel(name):
    """snake_case to camelCase."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def presented(value, field="", holder=""):
    """An object of the API as users see it."""
    if isinstance(value, list):
        return [presented(item, field, field) for item in value]
    if isinstance(value, dict):
        if field in MAPS:
            inner = value.get("labels")
            plain = inner if isinstance(inner, dict) and len(value) == 1 else value
            return {key: _scalar(item, field) for key, item in plain.items()}
        return {snake(name): presented(item, name, field or holder)
                for name, item in value.items()}
    if field == "size" and holder in SIZED_LISTS and _is_number(value):
        return int(value)
    return _scalar(value, field)


def _scalar(value, field):
    if field in ENUM_FIELDS and isinstance(value, str):
        return short_of(value)
    if field in NUMBER_FIELDS and _is_number(value):
        return int(value)
    return value


def _is_number(value):
    return isinstance(value, str) and value.isdigit()


def without_defaults(value, maps=()):
    """A value without what JSON of the API leaves out: absent, empty, zero, false.

    `maps` names fields whose content is data, with its empty texts.
    """
    if isinstance(value, dict):
        kept = {key: item if key in maps else without_defaults(item, maps)
                for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, "", 0, False, [], {})}
    if isinstance(value, (list, tuple)):
        return [without_defaults(item, maps) for item in value]
    return value


def get_path(value, path):
    """The part of an object that a dotted path names; None if it is not there."""
    for step in path.split("."):
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return value


def set_path(value, path, part):
    """Puts a part where a dotted path names it, and makes the dictionaries on the way."""
    *way, last = path.split(".")
    for step in way:
        value = value.setdefault(step, {})
    value[last] = part
