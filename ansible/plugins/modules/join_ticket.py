#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: join_ticket
short_description: Tickets with which agents and control nodes join
version_added: 0.1.0
description:
  - Creates a one-time ticket for the key of an agent or of a control node. It needs an admin role.
  - Each run creates a ticket; tell with C(creates) or a condition when none is needed any more. The roles do.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
attributes:
  check_mode:
    support: partial
    description: No ticket is created, and the server is asked only about agents.
  diff_mode:
    support: none
    description: A ticket has nothing before it.
options:
  kind:
    description: What joins.
    type: str
    required: true
    choices: [core, bmc, pixie, control]
  partition:
    description: Partition of the agent.
    type: str
  agent:
    description: Name of the agent; for V(core) the id of its switch.
    type: str
    aliases: [id]
  key_sha256:
    description: SHA-256 of the public key, as the agent's command C(key) prints it, and a control node that waits.
    type: str
  tpm_ek_sha256:
    description: SHA-256 of the public endorsement key of the host's TPM, as the agent's command C(tpm) prints it.
    type: str
  peer_address:
    description:
      - Address, V(HOST:PORT), by which other control nodes reach the node. With it the ticket of a control
        node needs no key, and is good for the first key that shows it from there.
    type: str
  minutes:
    description: How long the ticket is valid, at most 1440.
    type: int
    default: 15
"""

EXAMPLES = r"""
- name: A ticket for the agent of a leaf
  metalmesh.metalmesh.join_ticket:
    kind: core
    partition: fra-1
    agent: leaf-1
    key_sha256: "{{ key.stdout }}"
  register: ticket
  no_log: true
"""

RETURN = r"""
secret:
  description: Content of the ticket file.
  returned: when a ticket was created
  type: str
invitation:
  description: The line that C(metalmeshd join) reads, with the same ticket and what the node has to know.
  returned: when a control node was invited
  type: str
ticket:
  description: The ticket, or the invited node.
  returned: when the server was asked
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import full
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import presented
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import (
    connect, fail, new_module)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import ApiError

SPEC = {
    "kind": {"type": "str", "required": True, "choices": ["core", "bmc", "pixie", "control"]},
    "partition": {"type": "str"},
    "agent": {"type": "str", "aliases": ["id"]},
    "key_sha256": {"type": "str", "no_log": False},
    "peer_address": {"type": "str"},
    "tpm_ek_sha256": {"type": "str"},
    "minutes": {"type": "int", "default": 15},
}
AGENT = ["partition", "agent"]
CONDITIONS = {"required_if": [["kind", "core", AGENT], ["kind", "bmc", AGENT],
                              ["kind", "pixie", AGENT],
                              ["kind", "control", ["key_sha256", "peer_address"], True]],
              "required_one_of": [["key_sha256", "tpm_ek_sha256", "peer_address"]]}


def of_agent(client, params):
    """A ticket of an agent."""
    request = {"kind": full("AGENT_KIND", params["kind"]), "partition": params["partition"],
               "id": params["agent"], "keySha256": params["key_sha256"] or "",
               "tpmEkSha256": params["tpm_ek_sha256"] or "", "minutes": params["minutes"]}
    answer = client.call("metalmesh.admin.v1.JoinService", "Create", request)
    return answer.get("ticket"), {"secret": answer.get("secret")}


def of_node(client, params):
    """A ticket of a control node. Invitations have no dry run."""
    if client.dry_run:
        return None, {}
    request = {"minutes": params["minutes"]}
    for option, name in (("key_sha256", "keySha256"), ("peer_address", "peerAddress")):
        if params[option]:
            request[name] = params[option]
    answer = client.call("metalmesh.admin.v1.ClusterService", "Invite", request)
    return answer.get("node"), {name: answer[name] for name in ("secret", "invitation")
                                if name in answer}


def main():
    module = new_module(SPEC, CONDITIONS)
    client = connect(module)
    make = of_node if module.params["kind"] == "control" else of_agent
    try:
        ticket, secrets = make(client, module.params)
    except ApiError as error:
        fail(module, error)
    result = {"changed": True}
    if ticket is not None:
        result["ticket"] = presented(ticket)
    if not module.check_mode:
        result.update(secrets)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
