#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: machine_power
short_description: Power and boot of machines
version_added: 0.1.0
description:
  - Has the BMC of a machine carry out a command.
  - V(on) and V(off) change nothing if the BMC last reported the machine to be so. All other commands are
    carried out each time.
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
  project:
    description: UUID of the project of the machine. Without it an admin role is needed.
    type: str
  command:
    description: Command.
    type: str
    required: true
    choices:
      - 'on'
      - 'off'
      - reset
      - cycle
      - boot-to-bios
      - boot-from-disk
      - boot-from-pxe
      - identify-led-on
      - identify-led-off
"""

EXAMPLES = r"""
- name: Power cycle
  metalmesh.metalmesh.machine_power:
    id: 5c1d5a3e-3b5b-4b8e-9f62-0d7f4dc4a0a1
    project: "{{ web.id }}"
    command: cycle
"""

RETURN = r"""
id:
  description: UUID of the machine.
  returned: success
  type: str
task_id:
  description: Id of the task that carries out the command.
  returned: when there is one
  type: str
power_state:
  description: Power as the BMC reported it before the command, V(on), V(off) or empty.
  returned: success
  type: str
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import choices, full
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import get_path
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import (
    connect, fail, new_module)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import ApiError

SPEC = {
    "id": {"type": "str", "required": True, "aliases": ["uuid"]},
    "project": {"type": "str"},
    "command": {"type": "str", "required": True, "choices": choices("MACHINE_BMC_COMMAND")},
}


def carry_out(client, params):
    """Sends the command unless the machine is as it asks for."""
    admin = "api" if params["project"] else "admin"
    service = "metalstack.%s.v2.MachineService" % admin
    address = {"uuid": params["id"]}
    if params["project"]:
        address["project"] = params["project"]
    known = client.call(service, "GetBMC", address)
    power = (get_path(known, "bmcDetails.bmcReport.bmc.powerState") or "").lower()
    command = params["command"]
    result = {"id": params["id"], "power_state": power, "changed": command != power,
              "diff": {"before": {"power": power}, "after": {"power": power}}}
    if result["changed"]:
        request = dict(address, command=full("MACHINE_BMC_COMMAND", command))
        answer = client.call(service, "BMCCommand", request)
        result["diff"]["after"] = {"power": command}
        if answer.get("taskId"):
            result["task_id"] = answer["taskId"]
    return result


def main():
    module = new_module(SPEC)
    try:
        result = carry_out(connect(module), module.params)
    except ApiError as error:
        fail(module, error)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
