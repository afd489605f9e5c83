#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: machine_state
short_description: Machines that are locked, tainted or available
version_added: 0.1.0
description:
  - Takes a machine out of the pool of free machines, or puts it back. It needs an admin role.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
options:
  id:
    description: UUID of the machine.
    type: str
    required: true
    aliases: [uuid]
  state:
    description: V(locked) machines are left alone, V(tainted) ones are not allocated.
    type: str
    required: true
    choices: [tainted, locked, available]
  description:
    description: Why. It is required unless the machine becomes available.
    type: str
    default: ''
"""

EXAMPLES = r"""
- name: Somebody works on the machine
  metalmesh.metalmesh.machine_state:
    id: 5c1d5a3e-3b5b-4b8e-9f62-0d7f4dc4a0a1
    state: locked
    description: new memory
"""

RETURN = r"""
id:
  description: UUID of the machine.
  returned: success
  type: str
machine:
  description: The machine.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import (
    choices, full, short_of)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import (
    get_path, presented)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import (
    connect, fail, new_module)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import ApiError

SERVICE = "metalstack.admin.v2.MachineService"
SPEC = {
    "id": {"type": "str", "required": True, "aliases": ["uuid"]},
    "state": {"type": "str", "required": True, "choices": choices("MACHINE_STATE")},
    "description": {"type": "str", "default": ""},
}
CONDITIONS = {"required_if": [["state", "tainted", ["description"]],
                              ["state", "locked", ["description"]]]}


def shown(machine):
    """State and reason of a machine."""
    condition = get_path(machine, "status.condition") or {}
    return {"state": short_of(condition.get("state", "MACHINE_STATE_AVAILABLE")),
            "description": condition.get("description", "")}


def set_state(client, params):
    """Sets the state unless the machine has it."""
    machine = client.call(SERVICE, "Get", {"uuid": params["id"]})["machine"]
    before = shown(machine)
    after = {"state": params["state"], "description": params["description"]}
    changed = before["state"] != after["state"]
    if changed:
        request = {"uuid": params["id"], "state": full("MACHINE_STATE", params["state"]),
                   "description": params["description"]}
        machine = client.call(SERVICE, "SetState", request).get("machine", machine)
    return {"changed": changed, "id": params["id"], "machine": presented(machine),
            "diff": {"before": before, "after": after if changed else before}}


def main():
    module = new_module(SPEC, CONDITIONS)
    try:
        result = set_state(connect(module), module.params)
    except ApiError as error:
        fail(module, error)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
