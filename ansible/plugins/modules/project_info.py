#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: project_info
short_description: Looks up projects
version_added: 0.1.0
description:
  - Lists projects. With an admin role those of everybody, else those of the caller.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
  - metalmesh.metalmesh.info.labels
options:
  id:
    description: Only the project of this UUID.
    type: str
    aliases: [uuid]
  name:
    description: Only those of this name.
    type: str
  tenant:
    description: Only those of the tenant with this login.
    type: str
"""

EXAMPLES = r"""
- name: A project by its name
  metalmesh.metalmesh.project_info:
    name: web
    tenant: acme
  register: found
"""

RETURN = r"""
projects:
  description: The projects.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import (
    Filter, Listing, labels_filter, request_of, run_info)

API = "metalstack.api.v2.ProjectService"
ADMIN = "metalstack.admin.v2.ProjectService"


def of_caller(client, params):
    """The projects that the caller may see."""
    service = ADMIN if client.is_admin else API
    return client.call(service, "List", request_of(LISTING, params)).get("projects", [])


LISTING = Listing("projects", "projects", API, (
    Filter("id", "query.uuid", spec={"type": "str", "aliases": ["uuid"]}),
    Filter("name", "query.name"),
    Filter("tenant", "query.tenant"),
    labels_filter(),
), fetch=of_caller)


def main():
    run_info(LISTING)


if __name__ == "__main__":
    main()
