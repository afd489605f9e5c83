#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: filesystem_layout
short_description: Filesystem layouts
version_added: 0.1.0
description:
  - Creates, changes and deletes the layouts by which disks of machines are set up. It needs an admin role.
  - A list that is given replaces the layout's own; one that is left out, or empty, stays as it is.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
options:
  id:
    description: Id.
    type: str
    required: true
  name:
    description: Name.
    type: str
  description:
    description: Free text.
    type: str
  constraints:
    description: Machines that get the layout without being asked.
    type: dict
    suboptions:
      sizes:
        description: Sizes of the machines; V(*) at the end stands for the rest of a name.
        type: list
        elements: str
      images:
        description: Versions by operating system, such as V(>= 12).
        type: dict
  disks:
    description: Disks and their partitions.
    type: list
    elements: dict
    suboptions:
      device:
        description: Device, such as V(/dev/sda).
        type: str
        required: true
      partitions:
        description: Partitions.
        type: list
        elements: dict
        suboptions:
          number:
            description: Number, 0 for the first free one.
            type: int
            default: 0
          label:
            description: Label.
            type: str
          size:
            description: Size, MiB; 0 is the rest of the disk.
            type: int
            default: 0
          gpt_type:
            description: Type in the partition table.
            type: str
            choices: [ef00, '8300', fd00, 8e00]
  filesystems:
    description: Filesystems.
    type: list
    elements: dict
    suboptions:
      device:
        description: Device.
        type: str
        required: true
      format:
        description: Format.
        type: str
        required: true
        choices: [vfat, ext3, ext4, swap, tmpfs, none]
      name:
        description: Name.
        type: str
      description:
        description: Free text.
        type: str
      path:
        description: Where it is mounted.
        type: str
      label:
        description: Label.
        type: str
      mount_options:
        description: Options of the mount.
        type: list
        elements: str
      create_options:
        description: Options of the program that makes it.
        type: list
        elements: str
  raid:
    description: Arrays.
    type: list
    elements: dict
    suboptions:
      array_name:
        description: Device of the array.
        type: str
        required: true
      devices:
        description: Devices that it is made of.
        type: list
        elements: str
        required: true
      level:
        description: Level.
        type: str
        required: true
        choices: ['0', '1']
      create_options:
        description: Options of mdadm.
        type: list
        elements: str
      spares:
        description: Number of spare devices.
        type: int
        default: 0
  volume_groups:
    description: Volume groups.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name.
        type: str
        required: true
      devices:
        description: Devices that it is made of.
        type: list
        elements: str
        required: true
      tags:
        description: Tags.
        type: list
        elements: str
  logical_volumes:
    description: Logical volumes.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name.
        type: str
        required: true
      volume_group:
        description: Its volume group.
        type: str
        required: true
      size:
        description: Size, MiB; 0 is the rest of the group.
        type: int
        default: 0
      lvm_type:
        description: Type.
        type: str
        choices: [linear, striped, raid1]
        default: linear
"""

EXAMPLES = r"""
- name: A layout with one disk
  metalmesh.metalmesh.filesystem_layout:
    id: debian
    constraints:
      sizes: [c1-large]
      images: {debian: ">= 12"}
    disks:
      - device: /dev/sda
        partitions:
          - {number: 1, label: efi, size: 500, gpt_type: ef00}
          - {number: 2, label: root, size: 0, gpt_type: '8300'}
    filesystems:
      - {device: /dev/sda1, format: vfat, path: /boot/efi, label: efi}
      - {device: /dev/sda2, format: ext4, path: /, label: root}
"""

RETURN = r"""
id:
  description: Id of the layout.
  returned: when there is one
  type: str
filesystem_layout:
  description: The layout. In check mode as it would be.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.catalogue import CatalogueItem
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Tree
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import choices
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run

TEXT = {"type": "str"}
NEEDED = {"type": "str", "required": True}
COUNT = {"type": "int", "default": 0}
TEXTS = {"type": "list", "elements": "str"}
PARTITION = {"number": COUNT, "label": TEXT, "size": COUNT,
             "gpt_type": {"type": "str", "choices": choices("GPT_TYPE")}}
DISK = {"device": NEEDED,
        "partitions": {"type": "list", "elements": "dict", "options": PARTITION}}
FILESYSTEM = {"device": NEEDED, "format": dict(NEEDED, choices=choices("FORMAT")), "name": TEXT,
              "description": TEXT, "path": TEXT, "label": TEXT, "mount_options": TEXTS,
              "create_options": TEXTS}
RAID = {"array_name": NEEDED, "devices": dict(TEXTS, required=True),
        "level": dict(NEEDED, choices=choices("RAID_LEVEL")), "create_options": TEXTS,
        "spares": COUNT}
VOLUME_GROUP = {"name": NEEDED, "devices": dict(TEXTS, required=True), "tags": TEXTS}
LOGICAL_VOLUME = {"name": NEEDED, "volume_group": NEEDED, "size": COUNT,
                  "lvm_type": dict(TEXT, choices=choices("LVM_TYPE"), default="linear")}
CONSTRAINTS = {"sizes": TEXTS, "images": {"type": "dict"}}
TREE = Tree(maps=("images",), enums={"gpt_type": "GPT_TYPE", "format": "FORMAT",
                                     "level": "RAID_LEVEL", "lvm_type": "LVM_TYPE"})


def messages(option, path, options):
    """A list of messages."""
    return Field(option, path, TREE, keeps_empty=True,
                 spec={"type": "list", "elements": "dict", "options": options})


class FilesystemLayout(CatalogueItem):
    """A filesystem layout."""

    kind = "filesystem_layout"
    key = "filesystemLayout"
    service = "metalstack.admin.v2.FilesystemService"
    labelled = False

    @classmethod
    def table(cls):
        return (
            Field("name", "name"),
            Field("description", "description"),
            Field("constraints", "constraints", TREE, keeps_empty=True,
                  spec={"type": "dict", "options": CONSTRAINTS}),
            messages("disks", "disks", DISK),
            messages("filesystems", "filesystems", FILESYSTEM),
            messages("raid", "raid", RAID),
            messages("volume_groups", "volumeGroups", VOLUME_GROUP),
            messages("logical_volumes", "logicalVolumes", LOGICAL_VOLUME),
        )


def main():
    run(FilesystemLayout)


if __name__ == "__main__":
    main()
