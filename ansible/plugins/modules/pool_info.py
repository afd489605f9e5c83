#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: pool_info
short_description: Looks up pools and their hosts
version_added: 0.1.0
description:
  - Lists pools, each with its hosts. It needs an admin role.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
options:
  id:
    description: Only the pool of this id.
    type: str
"""

EXAMPLES = r"""
- name: Pools
  metalmesh.metalmesh.pool_info:
  register: found
"""

RETURN = r"""
pools:
  description: The pools, each with its hosts in C(pool_hosts).
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import Listing, run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.pools import POOLS


def pools(client, params):
    """The pools with their hosts."""
    found = client.call(POOLS, "List").get("pools", [])
    hosts = client.call(POOLS, "ListHosts", {"pool": params["id"] or ""}).get("hosts", [])
    return [dict(pool, poolHosts=[host for host in hosts if host.get("pool") == pool["id"]])
            for pool in found if params["id"] in (None, pool["id"])]


LISTING = Listing("pools", "", POOLS, fetch=pools, options={"id": {"type": "str"}})


def main():
    run_info(LISTING)


if __name__ == "__main__":
    main()
