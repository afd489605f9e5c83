# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""The intent of a claim: its options, and its fields in the API."""
from __future__ import annotations

import base64
import hashlib

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import (
    Codec, Flag, Items, Number, Tree)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import as_base64

TEXT = {"type": "str"}
NEEDED = {"type": "str", "required": True}
TEXTS = {"type": "list", "elements": "str"}
FLAG = {"type": "bool", "default": False}
SELECTOR = {"type": "dict", "options": {
    "match_labels": {"type": "dict"},
    "match_expressions": {"type": "list", "elements": "dict", "options": {
        "key": dict(NEEDED, no_log=False),
        "operator": dict(NEEDED, choices=["In", "NotIn", "Exists", "DoesNotExist"]),
        "values": TEXTS}},
}}
PREFERRED = {"type": "list", "elements": "dict", "options": {
    "weight": {"type": "int", "required": True}, "selector": dict(SELECTOR, required=True)}}
TOLERATIONS = {"type": "list", "elements": "dict", "options": {
    "key": dict(NEEDED, no_log=False), "value": TEXT}}
DOMAIN = {"type": "dict", "options": {"name": NEEDED, "required": FLAG}}
REUSE = {"type": "dict", "options": {
    "key": dict(NEEDED, no_log=False), "required": FLAG, "keep": {"type": "str", "default": "0s"},
    "wipe": {"type": "str", "choices": ["metadata", "erase", "sanitize"]}}}
NETWORKS = {"type": "list", "elements": "dict", "options": {"network": NEEDED, "ips": TEXTS}}
TREE = Tree(maps=("match_labels",))


class Reuse(Tree):
    """How a host is kept for the next claim; without `keep` it is not kept."""

    def __init__(self):
        super().__init__(durations=("keep",))

    def wanted(self, value):
        wanted = super().wanted(value)
        return {name: part for name, part in wanted.items() if (name, part) != ("keep", "0s")}


class UserData(Codec):
    """User data, of which the API shows the digest alone."""

    def wanted(self, value):
        return as_base64(value) if value else ""

    def same(self, wanted, observed):
        if not wanted:
            return not observed
        forms = (wanted.encode("ascii"), base64.b64decode(wanted))
        return observed in [hashlib.sha256(form).hexdigest() for form in forms]

    def merged(self, wanted, observed):
        return hashlib.sha256(wanted.encode("ascii")).hexdigest() if wanted else ""


def spec_fields():
    """The fields of the intent, in the order of the API."""

    def at(option, name, codec=None, spec=None):
        return Field(option, "spec." + name, codec or Codec(), spec=spec or TEXT)

    return (
        at("pools", "pools", Items(ordered=False), TEXTS),
        at("selector", "selector", TREE, SELECTOR),
        at("preferred", "preferred", TREE, PREFERRED),
        at("tolerations", "tolerations", TREE, TOLERATIONS),
        at("failure_domain", "failureDomain", TREE, DOMAIN),
        at("priority", "priority", Number(), {"type": "int"}),
        at("reuse", "reuse", Reuse(), REUSE),
        at("spread", "spread"),
        at("rebind", "rebind", Flag(), {"type": "bool"}),
        at("paused", "paused", Flag(), {"type": "bool"}),
        at("powered_on", "poweredOn", Flag(), {"type": "bool"}),
        at("image", "image"),
        at("filesystem_layout", "filesystemLayout"),
        at("hostname", "hostname"),
        at("networks", "networks", TREE, NETWORKS),
        at("ssh_public_keys", "sshPublicKeys", Items(), dict(TEXTS, no_log=False)),
        Field("user_data", "status.userDataSha256", UserData(), create="spec.userData",
              update="spec.userData"),
    )
