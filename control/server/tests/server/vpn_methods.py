"""Calls the VPN's methods through the published client, in each combination of protocol and codec.

Prints a line of JSON with a key for each combination, each of which lets one node in; then waits
for a line of its standard input, which comes when the nodes are in, and lists them.

Usage: ADMIN_TOKEN=... vpn_methods.py http://127.0.0.1:PORT
"""

import json
import os
import sys

from connectrpc.code import Code

from caller import Caller, refused
from contract import COMBINATIONS

KEY, NODES = "admin.VPNService/AuthKey", "admin.VPNService/ListNodes"
REASON = "look at the firewall"


def main():
    admins = [Caller(sys.argv[1], options, os.environ["ADMIN_TOKEN"], set())
              for _, options in COMBINATIONS]
    admin, keys = admins[0], []
    admin("admin.TenantService/Create", name="acme")
    project, other = (admin("api.ProjectService/Create", login="acme", name=name,
                            description="with a VPN").project.uuid for name in ("web", "shop"))
    for admin in admins:
        made = admin(KEY, project=project, reason=REASON, expires="600s")
        assert made.auth_key and made.address.startswith("http://"), made
        assert not made.reusable and not made.ephemeral, made
        # The two times are read one after the other.
        lasts_s = made.expires_at.seconds - made.created_at.seconds
        assert 570 <= lasts_s <= 600, made
        keys.append(made.auth_key)
    assert len(set(keys)) == len(keys), "one key twice"
    nobody = admin.as_(None)
    refused(Code.PERMISSION_DENIED, lambda: nobody(KEY, project=project, reason=REASON))
    refused(Code.INVALID_ARGUMENT, lambda: admin(KEY, project=project, reason="short"))
    print(json.dumps({"keys": keys}), flush=True)
    sys.stdin.readline()
    for admin in admins:
        for named, count in (({"project": project}, len(keys)), ({"project": other}, 0),
                             ({}, len(keys))):
            nodes = admin(NODES, **named).nodes
            assert len(nodes) == count, f"{named}: {nodes}"
        assert len({node.name for node in nodes}) == len(keys), nodes
        assert all(node.project == project and node.ip_addresses for node in nodes), nodes
    served = set.intersection(*(admin.served for admin in admins))
    print(f"{len(served & {KEY, NODES})} methods of the VPN, {len(admins)} combinations, "
          f"{len(keys)} nodes")


main()
