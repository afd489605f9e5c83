"""A machine that does not exist registers, and says that it hangs where another one does."""

import json
import ssl
import sys
import urllib.request

api, authority, token_file, partition, uuid, switch, port = sys.argv[1:]
context = ssl.create_default_context(cafile=authority)


def call(method, token, body):
    headers = {
        "authorization": f"Bearer {token}",
        "connect-protocol-version": "1",
        "content-type": "application/json",
    }
    url = f"{api}/metalstack.infra.v2.BootService/{method}"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, context=context) as answer:
        return json.load(answer)


with open(token_file, encoding="ascii") as file:
    agent = file.read().strip()
call("Dhcp", agent, {"uuid": uuid, "partition": partition})
asked = {"uuid": uuid, "user": "metal-hammer", "expires": "900s"}
machine = call("MachineToken", agent, asked)["secret"]
heard = {"hostname": switch, "name": port, "identifier": port}
# A machine hears two switches; nobody manages the second one.
spare = {"hostname": "spare", "name": "Eth1/1", "identifier": "Eth1/1"}
nic = {"name": "eth0", "mac": "52:54:00:77:09:09", "neighbors": [heard, spare]}
hardware = {"memory": str(1 << 30), "nics": [nic]}
registration = {"uuid": uuid, "partition": partition, "hardware": hardware, "bios": {}}
call("Register", machine, registration)
