#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: machine
short_description: Machines of a project
version_added: 0.1.0
description:
  - Allocates a machine for a project, changes what can be changed of it, and frees it.
  - An allocation is found by its name in the project, or by the UUID of its machine. What is fixed for
    the time of an allocation (image, size, partition, host name, networks, user data) is not compared
    with what it has beyond a warning.
  - Two runs at once allocate one machine.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
  - metalmesh.metalmesh.resource.labels
  - metalmesh.metalmesh.resource.owned
  - metalmesh.metalmesh.resource.wait
  - metalmesh.metalmesh.allocation
options:
  filesystemlayout:
    description: Filesystem layout. Default is the one that fits size and image.
    type: str
    aliases: [filesystem_layout]
  wait:
    description:
      - Whether the module waits until the system runs (V(Phoned Home)), or with O(state=absent) until
        the project no longer has the machine.
"""

EXAMPLES = r"""
- name: A web server
  metalmesh.metalmesh.machine:
    name: web-1
    project: 0195a5b2-7c1e-7d8a-a1f2-9d5b6c0e4f11
    partition: fra-1
    size: c1-large
    image: debian-12
    networks: [internet, "tenant-network:noauto"]
    ips: [10.0.4.17]
    ssh_pub_keys: ["{{ lookup('file', '~/.ssh/id_ed25519.pub') }}"]
    wait: true

- name: It is not needed any more
  metalmesh.metalmesh.machine:
    name: web-1
    project: 0195a5b2-7c1e-7d8a-a1f2-9d5b6c0e4f11
    state: absent
"""

RETURN = r"""
id:
  description: UUID of the machine.
  returned: when there is one
  type: str
machine:
  description: The machine. In check mode as it would be, if the server could say.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.allocation import Allocation
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import WARN, Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run


class Machine(Allocation):
    """A machine that is no firewall."""

    kind = "machine"
    allocation_type = "machine"

    @classmethod
    def table(cls):
        layout = Field("filesystemlayout", "allocation.filesystemLayout.id",
                       create="filesystemLayout", update=None, fixed=WARN,
                       spec={"type": "str", "aliases": ["filesystem_layout"]})
        return super().table() + (layout,)


def main():
    run(Machine)


if __name__ == "__main__":
    main()
