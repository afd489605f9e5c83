#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: size
short_description: Sizes of machines
version_added: 0.1.0
description:
  - Creates, changes and deletes sizes, by which machines are told apart. It needs an admin role.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
  - metalmesh.metalmesh.resource.labels
options:
  id:
    description: Id, such as V(c1-large).
    type: str
    required: true
  name:
    description: Name.
    type: str
  description:
    description: Free text.
    type: str
  constraints:
    description: What the hardware of a machine of this size has, all of it.
    type: list
    elements: dict
    suboptions:
      type:
        description: What is counted. Memory and storage are in bytes.
        type: str
        required: true
        choices: [cores, memory, storage, gpu]
      min:
        description: At least so much.
        type: int
        default: 0
      max:
        description: At most so much.
        type: int
        required: true
      identifier:
        description: Pattern for the model of a processor or GPU, or the name of a disk.
        type: str
"""

EXAMPLES = r"""
- name: A size
  metalmesh.metalmesh.size:
    id: c1-large
    constraints:
      - {type: cores, min: 16, max: 32}
      - {type: memory, min: 68719476736, max: 137438953472}
      - {type: storage, min: 1000000000000, max: 4000000000000}
"""

RETURN = r"""
id:
  description: Id of the size.
  returned: when there is one
  type: str
size:
  description: The size. In check mode as it would be.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.catalogue import CatalogueItem
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Tree
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import choices
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run

CONSTRAINT = {
    "type": {"type": "str", "required": True, "choices": choices("SIZE_CONSTRAINT_TYPE")},
    "min": {"type": "int", "default": 0},
    "max": {"type": "int", "required": True},
    "identifier": {"type": "str"},
}


class Size(CatalogueItem):
    """A size of the catalogue."""

    kind = "size"
    key = "size"
    service = "metalstack.admin.v2.SizeService"

    @classmethod
    def table(cls):
        return (
            Field("name", "name"),
            Field("description", "description"),
            Field("constraints", "constraints", Tree(enums={"type": "SIZE_CONSTRAINT_TYPE"}),
                  keeps_empty=True,
                  spec={"type": "list", "elements": "dict", "options": CONSTRAINT}),
        )


def main():
    run(Size)


if __name__ == "__main__":
    main()
