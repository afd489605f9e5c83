#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: tenant
short_description: Tenants
version_added: 0.1.0
description:
  - Creates, changes and deletes tenants, which own projects.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
  - metalmesh.metalmesh.resource.labels
  - metalmesh.metalmesh.resource.owned
options:
  name:
    description: Name. Without O(login) the tenant is found by it among those of the caller.
    type: str
    required: true
  login:
    description:
      - Login of the tenant, its id. With an admin role a new tenant gets it, and its user is the owner.
      - Without it a new tenant has a login that control makes, and the caller is its owner.
    type: str
    aliases: [id]
  description:
    description: Free text.
    type: str
  email:
    description: Mail address.
    type: str
  avatar_url:
    description: URL of a picture.
    type: str
"""

EXAMPLES = r"""
- name: A tenant with a login of its own
  metalmesh.metalmesh.tenant:
    name: acme
    login: acme
    email: ops@acme.example
    labels:
      contract: c-17
"""

RETURN = r"""
id:
  description: Login of the tenant.
  returned: when there is one
  type: str
tenant:
  description: The tenant. In check mode as it would be.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import Handler
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import (
    Field, create_request)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run

TENANTS = "metalstack.api.v2.TenantService"


class Tenant(Handler):
    """A tenant, found by its login or by its name."""

    kind = "tenant"
    key = "tenant"
    service = TENANTS
    identity = "login"
    id_option = "login"
    owned = True
    options = {"login": {"type": "str", "aliases": ["id"]}}

    @classmethod
    def table(cls):
        return (
            Field("name", "name", spec={"type": "str", "required": True}),
            Field("description", "description"),
            Field("email", "email"),
            Field("avatar_url", "avatarUrl"),
        )

    def find(self):
        if self.params["login"]:
            answer = self.client.find(self.service, "Get", {"login": self.params["login"]})
            return (answer or {}).get("tenant")
        answer = self.client.call(self.service, "List", {"query": {"name": self.params["name"]}})
        return self.only(answer.get("tenants", []), "give its login")

    def create(self, plan):
        login = self.params["login"]
        if not login:
            return super().create(plan)
        request = create_request(self.fields, plan.wanted, owned=True)
        name, request["name"] = request["name"], login
        made = self.client.call("metalstack.admin.v2.TenantService", "Create", request)["tenant"]
        if name == login or self.client.dry_run:
            return dict(made, name=name)
        renamed = {"login": login, "name": name, "updateMeta": self.lock(made)}
        return self.client.call(self.service, "Update", renamed).get("tenant")


def main():
    run(Tenant)


if __name__ == "__main__":
    main()
