#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: firewall_rules
short_description: Rules of firewalls
version_added: 0.1.0
description:
  - Writes and removes a set of firewall rules. A set is attached to a firewall, or to a private network and
    so to each firewall of the project in it.
  - Control compares the rules with those in force, so that the same rules make no new revision.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
options:
  project:
    description: UUID of the project whose rules they are. Without it they are the operator's, which decide first.
    type: str
  firewall:
    description: UUID of the firewall.
    type: str
  network:
    description: Id of the private network.
    type: str
  content:
    description:
      - Parts C(firewall), C(cwnp) and C(service) of the firewall agent's file, with its names.
      - It is required with O(state=present), and replaces the whole set.
    type: dict
  comment:
    description: Comment of the revision, at most 1 KiB.
    type: str
    default: ''
"""

EXAMPLES = r"""
- name: Web servers of a network
  metalmesh.metalmesh.firewall_rules:
    project: "{{ web.id }}"
    network: "{{ net.id }}"
    comment: only https
    content:
      cwnp:
        ingress:
          - name: https
            ports: [{protocol: TCP, port: 443}]
        egress:
          - name: dns
            to: [{cidr: 9.9.9.9/32}]
            ports: [{protocol: UDP, port: 53}]
"""

RETURN = r"""
id:
  description: Number of the revision in force.
  returned: when there is one
  type: int
firewall_rules:
  description: The set. In check mode as it would be.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import Handler
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import (
    CREATE, DELETE, NOTHING, UPDATE, Plan)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import get_path
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import (
    ABOUT_THE_STATE, ApiClient, ApiError)

OWN = "metalmesh.admin.v1.FirewallRulesService"
OPERATOR = "metalmesh.admin.v1.OperatorRulesService"


class FirewallRules(Handler):
    """A set of rules."""

    kind = "firewall_rules"
    key = "rules"
    identity = "revision"
    labelled = False
    options = {
        "project": {"type": "str"},
        "firewall": {"type": "str"},
        "network": {"type": "str"},
        "content": {"type": "dict"},
        "comment": {"type": "str", "default": ""},
    }
    conditions = {"required_one_of": [["firewall", "network"]],
                  "mutually_exclusive": [["firewall", "network"]],
                  "required_if": [["state", "present", ["content"]]]}

    @classmethod
    def table(cls):
        return ()

    @property
    def name(self):
        return "of %s" % (self.params["firewall"] or self.params["network"])

    @property
    def service(self):
        """The service of the owner."""
        return OWN if self.params["project"] else OPERATOR

    def scope(self):
        names = ("project", "firewall", "network")
        return {name: self.params[name] for name in names if self.params[name]}

    def find(self):
        return (self.client.find(self.service, "Get", self.scope()) or {}).get("rules")

    def _request(self, actual):
        request = dict(self.scope(), content=self.params["content"],
                       expectedRevision=(actual or {}).get("revision", 0))
        if self.params["comment"]:
            request["comment"] = self.params["comment"]
        return request

    def plan(self, actual, state):
        before = get_path(actual or {}, "content") or {}
        if state == "absent":
            return Plan(DELETE, before={"content": before}) if actual else Plan(NOTHING)
        # Only control knows whether a content says the same: names and defaults may be left out.
        made = self._tried(actual)
        same = actual is not None and made.get("revision") == actual.get("revision")
        action = NOTHING if same else UPDATE if actual else CREATE
        after = before if same else made.get("content", self.params["content"])
        return Plan(action, before={"content": before} if actual else {}, after={"content": after})

    def _tried(self, actual):
        """The set as it would be after the change."""
        trial = ApiClient(self.client.settings, dry_run=True)
        # A comment alone would be a revision: it only goes with a change.
        request = self._request(actual)
        request.pop("comment", None)
        try:
            return trial.call(self.service, "Set", request).get("rules", {})
        except ApiError as error:
            # In check mode the firewall may be one that an earlier task only pretended to create.
            if not self.client.dry_run or error.code not in ABOUT_THE_STATE:
                raise
            return {}

    def create(self, plan):
        return self.client.call(self.service, "Set", self._request(None)).get("rules")

    def update(self, plan, actual):
        return self.client.call(self.service, "Set", self._request(actual)).get("rules")

    def delete(self, actual):
        request = dict(self.scope(), expectedRevision=actual["revision"])
        self.client.call(self.service, "Remove", request)


def main():
    run(FirewallRules)


if __name__ == "__main__":
    main()
