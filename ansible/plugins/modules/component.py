#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: component
short_description: Credentials of components that work for a project
version_added: 0.1.0
description:
  - Creates and revokes the credential of a component, such as a cloud controller manager. It may call
    what its kind needs, in its project, and belongs to no user.
  - The secret is returned when the credential is created, and never again.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
options:
  project:
    description: UUID of the project.
    type: str
    required: true
  kind:
    description: Kind of the component.
    type: str
    required: true
    choices:
      - gardener
      - ccm
      - machine-controller-manager
      - firewall-controller-manager
      - cluster-api
      - reader
  name:
    description: Name of the component, such as that of its cluster; 2 to 64 of V(a-z), V(0-9) and V(-).
    type: str
    required: true
  days:
    description: Life of a new credential, days, at most 365.
    type: int
    default: 90
"""

EXAMPLES = r"""
- name: A credential for the cloud controller manager of a cluster
  metalmesh.metalmesh.component:
    project: "{{ web.id }}"
    kind: ccm
    name: production
  register: ccm
  no_log: true
"""

RETURN = r"""
id:
  description: UUID of the credential.
  returned: when there is one
  type: str
component:
  description: The component. In check mode as it would be.
  returned: success
  type: dict
secret:
  description: The bearer token.
  returned: when the credential was created
  type: str
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Choice, Number
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import choices, full
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import Handler
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import (
    IGNORE, Field, create_request)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run


class Component(Handler):
    """A credential, found by kind and name in its project."""

    kind = "component"
    key = "component"
    service = "metalmesh.admin.v1.ProjectComponentService"
    labelled = False
    options = {"project": {"type": "str", "required": True}}
    secret = None

    @classmethod
    def table(cls):
        return (
            Field("kind", "kind", Choice("PROJECT_COMPONENT_KIND"), update=None,
                  spec={"type": "str", "required": True,
                        "choices": choices("PROJECT_COMPONENT_KIND")}),
            Field("name", "name", update=None, spec={"type": "str", "required": True}),
            Field("days", "days", Number(), update=None, fixed=IGNORE,
                  spec={"type": "int", "default": 90}),
        )

    def scope(self):
        return {"project": self.params["project"]}

    def find(self):
        answer = self.client.find(self.service, "List", self.scope()) or {}
        kind = full("PROJECT_COMPONENT_KIND", self.params["kind"])
        return self.only([one for one in answer.get("components", [])
                          if one.get("name") == self.params["name"] and one.get("kind") == kind])

    def create(self, plan):
        request = dict(create_request(self.fields, plan.wanted), **self.scope())
        answer = self.client.call(self.service, "Create", request)
        self.secret = None if self.client.dry_run else answer.get("secret")
        return answer.get("component")

    def delete(self, actual):
        self.client.call(self.service, "Revoke", self.address(actual))

    def extra(self, actual):
        return {"secret": self.secret} if self.secret else {}


def main():
    run(Component)


if __name__ == "__main__":
    main()
