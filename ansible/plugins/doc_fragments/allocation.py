# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Options that machines and firewalls share."""
from __future__ import annotations


class ModuleDocFragment:
    """An allocation: a machine of a project with an image, networks and access."""

    DOCUMENTATION = r"""
options:
  id:
    description:
      - UUID of the machine. A machine that is free and that the project owns or leases, or any free
        one with an admin role, is allocated.
      - Without it the allocation of O(name) in the project is meant, and control chooses a machine.
    type: str
    aliases: [uuid]
  name:
    description:
      - Name of the allocation. With O(state=present) it is required unless O(id) is allocated already.
    type: str
  description:
    description: Free text.
    type: str
  hostname:
    description: Host name of the system. Default is O(name), if it can be one.
    type: str
  project:
    description: UUID of the project.
    type: str
    required: true
  partition:
    description: Partition of the machine.
    type: str
  image:
    description:
      - Image, V(debian-12) for the newest version or with its version.
      - A newer version of the same image is no difference.
    type: str
  size:
    description: Size of the machine.
    type: str
  networks:
    description:
      - Networks of the machine, each V(ID) or V(ID:auto) for a new address, V(ID:noauto) for those of
        O(ips) alone, or a dictionary with C(network) and C(ips).
    type: list
    elements: raw
  ips:
    description: Addresses of the project, which the machine gets in their networks instead of new ones.
    type: list
    elements: str
  tags:
    description: Labels as V(key=value) or V(key); merged with O(labels).
    type: list
    elements: str
  ssh_pub_keys:
    description: Public keys that may log in. They can be changed until the installation begins.
    type: list
    elements: str
    aliases: [ssh_public_keys]
  userdata:
    description: cloud-init or Ignition, as text or base64.
    type: str
  placement_labels:
    description: Labels that spread the machines of the project over racks.
    type: dict
  dns_servers:
    description: Name servers, at most 3. Default are those of the partition.
    type: list
    elements: str
  ntp_servers:
    description: Time servers, at most 10. Default are those of the partition.
    type: list
    elements: str
"""
