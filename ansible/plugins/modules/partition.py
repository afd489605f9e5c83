#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: partition
short_description: Partitions
version_added: 0.1.0
description:
  - Creates, changes and deletes partitions, the places of machines. It needs an admin role.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
  - metalmesh.metalmesh.resource.labels
options:
  id:
    description: Id, such as V(fra-1).
    type: str
    required: true
  description:
    description: Free text.
    type: str
  boot_configuration:
    description: What machines boot to be installed.
    type: dict
    suboptions:
      image_url:
        description: URL of the initial RAM disk.
        type: str
        required: true
      kernel_url:
        description: URL of the kernel.
        type: str
        required: true
      commandline:
        description: Command line of the kernel.
        type: str
  dns_servers:
    description: Name servers of machines, at most 3. An empty list removes all.
    type: list
    elements: str
  ntp_servers:
    description: Time servers of machines, at most 10. An empty list removes all.
    type: list
    elements: str
  mgmt_service_addresses:
    description: Addresses of services in the management network, V(HOST:PORT). An empty list removes all.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: A partition
  metalmesh.metalmesh.partition:
    id: fra-1
    description: Frankfurt, room 1
    boot_configuration:
      kernel_url: https://images.example/hammer/kernel
      image_url: https://images.example/hammer/initramfs
    dns_servers: [10.0.0.53]
"""

RETURN = r"""
id:
  description: Id of the partition.
  returned: when there is one
  type: str
partition:
  description: The partition. In check mode as it would be.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.catalogue import CatalogueItem
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Items, Tree
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run

BOOT = {
    "image_url": {"type": "str", "required": True},
    "kernel_url": {"type": "str", "required": True},
    "commandline": {"type": "str"},
}
TEXTS = {"type": "list", "elements": "str"}
# The address by which the API empties a list, which JSON cannot tell from an absent one.
NOTHING = "0.0.0.0"


class Partition(CatalogueItem):
    """A partition."""

    kind = "partition"
    key = "partition"
    service = "metalstack.admin.v2.PartitionService"

    @classmethod
    def table(cls):
        return (
            Field("description", "description"),
            Field("boot_configuration", "bootConfiguration", Tree(), keeps_empty=True,
                  spec={"type": "dict", "options": BOOT}),
            Field("dns_servers", "dnsServers", Items("ip", NOTHING), spec=TEXTS),
            Field("ntp_servers", "ntpServers", Items("address", NOTHING), spec=TEXTS),
            Field("mgmt_service_addresses", "mgmtServiceAddresses",
                  Items(nothing=NOTHING + ":1"), spec=TEXTS),
        )


def main():
    run(Partition)


if __name__ == "__main__":
    main()
