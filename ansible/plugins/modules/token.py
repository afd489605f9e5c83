#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: token
short_description: API tokens
version_added: 0.1.0
description:
  - Creates, changes and revokes API tokens. A token is found by its description among those that are
    valid.
  - The secret is returned when the token is created, and never again.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
  - metalmesh.metalmesh.resource.labels
options:
  description:
    description: Description of the token, by which it is found.
    type: str
    required: true
  user:
    description: Login of the user that the token is for, with an admin role. Default is the caller.
    type: str
  admin_role:
    description: Role in the administration of the site.
    type: str
    choices: [editor, viewer]
  infra_role:
    description: Role of an agent of the published stack.
    type: str
    choices: [editor, viewer]
  tenant_roles:
    description: Roles by login of a tenant; V(*) stands for all.
    type: dict
  project_roles:
    description: Roles by UUID of a project; V(*) stands for all.
    type: dict
  machine_roles:
    description: Roles by UUID of a machine; V(*) stands for all.
    type: dict
  permissions:
    description: Single methods that the token may call.
    type: list
    elements: dict
    suboptions:
      subject:
        description: UUID of the project or machine, or login of the tenant. Empty for other methods.
        type: str
        default: ''
      visibility:
        description: Kind of the methods.
        type: str
        choices: [public, self, project, tenant, machine, admin, infra]
        default: project
      methods:
        description: Paths of the methods, such as V(/metalstack.api.v2.MachineService/Get).
        type: list
        elements: str
        required: true
  expires:
    description: Life of a new token, such as V(3d5h19m), V(90d) or seconds; 10 minutes to 365 days.
    type: str
    default: 8h
"""

EXAMPLES = r"""
- name: A token for the pipeline
  metalmesh.metalmesh.token:
    description: pipeline of web
    project_roles: {"{{ web.id }}": editor}
    expires: 30d
  register: pipeline
  no_log: true
"""

RETURN = r"""
id:
  description: UUID of the token.
  returned: when there is one
  type: str
token:
  description: The token, without its secret. In check mode as it would be.
  returned: success
  type: dict
secret:
  description: The bearer token.
  returned: when the token was created
  type: str
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import (
    Choice, Codec, Duration, Roles)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import choices
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import Handler
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import (
    IGNORE, Field, create_request)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import get_path
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run

OWN = "metalstack.api.v2.TokenService"
ALL = "metalstack.admin.v2.TokenService"
SUBJECTS = {"project": "project", "tenant": "login", "machine": "uuid"}
PERMISSION = {
    "subject": {"type": "str", "default": ""},
    "visibility": {"type": "str", "default": "project",
                   "choices": ["public", "self", "project", "tenant", "machine", "admin", "infra"]},
    "methods": {"type": "list", "elements": "str", "required": True},
}


class Permissions(Codec):
    """Methods by subject. Tokens keep no visibility, so it is not compared."""

    def observed(self, value):
        return [dict(one, subject=one.get("subject", "")) for one in value or []]

    def same(self, wanted, observed):
        return _pairs(wanted) == _pairs(observed)

    def created(self, wanted):
        return [self._entry(one) for one in wanted]

    def _entry(self, one):
        entry = {"methods": one["methods"]}
        if one["visibility"] in SUBJECTS:
            entry[SUBJECTS[one["visibility"]]] = one["subject"]
        return {one["visibility"]: entry}


def _pairs(permissions):
    return {(one["subject"], method) for one in permissions for method in one.get("methods", [])}


class Token(Handler):
    """A valid token, found by its description."""

    kind = "token"
    key = "token"
    service = OWN
    identity = "uuid"
    id_option = "uuid"
    options = {"user": {"type": "str"}}
    secret = None

    @classmethod
    def table(cls):
        role = {"type": "str", "choices": choices("ADMIN_ROLE")}
        roles = {"type": "dict"}
        return (
            Field("description", "description", spec={"type": "str", "required": True}),
            Field("admin_role", "adminRole", Choice("ADMIN_ROLE"), spec=role),
            Field("infra_role", "infraRole", Choice("INFRA_ROLE"), spec=role),
            Field("tenant_roles", "tenantRoles", Roles("TENANT_ROLE"), spec=roles),
            Field("project_roles", "projectRoles", Roles("PROJECT_ROLE"), spec=roles),
            Field("machine_roles", "machineRoles", Roles("MACHINE_ROLE"), spec=roles),
            Field("permissions", "permissions", Permissions(),
                  spec={"type": "list", "elements": "dict", "options": PERMISSION}),
            Field("expires", "lifetime", Duration(), create="expires", update=None, fixed=IGNORE,
                  spec={"type": "str", "default": "8h"}),
        )

    @property
    def name(self):
        return self.params["description"]

    def find(self):
        query = {"description": self.name}
        if self.params["user"]:
            query["user"] = self.params["user"]
        service = ALL if self.params["user"] else OWN
        found = self.client.call(service, "List", {"query": query}).get("tokens", [])
        return self.only([one for one in found if one.get("description") == self.name],
                         "revoke the others")

    def create(self, plan):
        request = create_request(self.fields, plan.wanted)
        if self.params["user"]:
            wrapped = {"user": self.params["user"], "tokenCreateRequest": request}
            answer = self.client.call(ALL, "Create", wrapped)
        else:
            answer = self.client.call(OWN, "Create", request)
        # The secret of a dry run is good for nothing.
        self.secret = None if self.client.dry_run else answer.get("secret")
        return answer.get("token")

    def delete(self, actual):
        if self.params["user"]:
            address = {"uuid": actual["uuid"], "user": get_path(actual, "user")}
            self.client.call(ALL, "Revoke", address)
        else:
            self.client.call(OWN, "Revoke", {"uuid": actual["uuid"]})

    def extra(self, actual):
        return {"secret": self.secret} if self.secret else {}


def main():
    run(Token)


if __name__ == "__main__":
    main()
