#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: member
short_description: Members of tenants and projects
version_added: 0.1.0
description:
  - Adds members to a tenant or a project, changes their roles, and removes them.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
options:
  member:
    description: Login of the member.
    type: str
    required: true
    aliases: [user]
  project:
    description: UUID of the project. Members that come from its tenant are not counted.
    type: str
  tenant:
    description: Login of the tenant.
    type: str
  role:
    description: Role. V(guest) is for tenants. It is required with O(state=present).
    type: str
    choices: [owner, editor, viewer, guest]
"""

EXAMPLES = r"""
- name: An editor of the project
  metalmesh.metalmesh.member:
    project: "{{ web.id }}"
    member: maya@openid-connect
    role: editor
"""

RETURN = r"""
id:
  description: Login of the member.
  returned: when there is one
  type: str
member:
  description: The member. In check mode as it would be.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Choice
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import full
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import Handler
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run

ROLES = ["owner", "editor", "viewer", "guest"]


class Member(Handler):
    """A direct member of a tenant or a project."""

    kind = "member"
    labelled = False
    options = {
        "member": {"type": "str", "required": True, "aliases": ["user"]},
        "project": {"type": "str"},
        "tenant": {"type": "str"},
    }
    conditions = {"required_one_of": [["project", "tenant"]],
                  "mutually_exclusive": [["project", "tenant"]],
                  "required_if": [["state", "present", ["role"]]]}

    @classmethod
    def table(cls):
        return (Field("role", "role", Choice("TENANT_ROLE"),
                      spec={"type": "str", "choices": ROLES}),)

    @property
    def name(self):
        return self.params["member"]

    @property
    def service(self):
        """The service of what the member belongs to."""
        place = "Project" if self.params["project"] else "Tenant"
        return "metalstack.api.v2.%sService" % place

    def scope(self):
        if self.params["project"]:
            return {"project": self.params["project"]}
        return {"login": self.params["tenant"]}

    def find(self):
        answer = self.client.find(self.service, "Get", self.scope()) or {}
        members = answer.get("projectMembers", []) + answer.get("tenantMembers", [])
        own = [one for one in members
               if one.get("id") == self.name and not one.get("inheritedMembership")]
        return own[0] if own else None

    def address(self, actual=None):
        return dict(self.scope(), member=self.name)

    def _set(self, method):
        prefix = "PROJECT_ROLE" if self.params["project"] else "TENANT_ROLE"
        role = full(prefix, self.params["role"])
        self.client.call(self.service, method, dict(self.address(), role=role))
        return {"id": self.name, "role": role}

    def prepare(self, actual):
        if self.params["project"] and self.params["role"] == "guest":
            raise Refusal("role: guest is a role in tenants; a member of a project is owner, editor "
                          "or viewer")

    def create(self, plan):
        return self._set("AddMember")

    def update(self, plan, actual):
        return dict(actual, **self._set("UpdateMember"))

    def delete(self, actual):
        self.client.call(self.service, "RemoveMember", self.address())


def main():
    run(Member)


if __name__ == "__main__":
    main()
