#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: project
short_description: Projects
version_added: 0.1.0
description:
  - Creates, changes and deletes projects, to which machines, networks and addresses belong.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
  - metalmesh.metalmesh.resource.labels
  - metalmesh.metalmesh.resource.owned
options:
  id:
    description: UUID of the project. Without it the project is found by O(name) and O(tenant).
    type: str
    aliases: [uuid]
  name:
    description: Name, unique in the tenant.
    type: str
    required: true
  description:
    description: Free text.
    type: str
  tenant:
    description:
      - Login of the tenant that owns the project. Default for a new project is the caller's own tenant.
    type: str
  avatar_url:
    description: URL of a picture.
    type: str
"""

EXAMPLES = r"""
- name: A project
  metalmesh.metalmesh.project:
    name: web
    tenant: acme
    description: Web servers
  register: web

- name: A network of the project
  metalmesh.metalmesh.network:
    name: web
    project: "{{ web.id }}"
    partition: fra-1
"""

RETURN = r"""
id:
  description: UUID of the project.
  returned: when there is one
  type: str
project:
  description: The project. In check mode as it would be.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import Handler
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import get_path
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run

PROJECTS = "metalstack.api.v2.ProjectService"


class Project(Handler):
    """A project, found by its UUID, or by its name in a tenant."""

    kind = "project"
    key = "project"
    service = PROJECTS
    identity = "uuid"
    id_option = "project"
    owned = True
    options = {"id": {"type": "str", "aliases": ["uuid"]}}

    @classmethod
    def table(cls):
        return (
            Field("name", "name", spec={"type": "str", "required": True}),
            Field("description", "description"),
            Field("tenant", "tenant", create="login", update=None),
            Field("avatar_url", "avatarUrl"),
        )

    def find(self):
        if self.params["id"]:
            answer = self.client.find(self.service, "Get", {"project": self.params["id"]})
            return (answer or {}).get("project")
        query = {"name": self.params["name"]}
        if self.params["tenant"]:
            query["tenant"] = self.params["tenant"]
        service = "metalstack.admin.v2.ProjectService" if self.client.is_admin else self.service
        found = self.client.call(service, "List", {"query": query}).get("projects", [])
        return self.only(found, "give its id or tenant")

    def create(self, plan):
        if self.params["id"]:
            raise Refusal("project %s does not exist, and control makes the ids of projects; leave "
                          "id out" % self.params["id"])
        if "tenant" not in plan.wanted:
            user = self.client.call("metalstack.api.v2.UserService", "Get")
            plan.wanted["tenant"] = get_path(user, "user.defaultTenant.login")
        return super().create(plan)


def main():
    run(Project)


if __name__ == "__main__":
    main()
