# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""A rack without hardware: machines, their switches and BMCs, by the API for agents of the published stack.

Usage: fake_rack.py URL TOKEN PARTITION CORES LEAVES UUID [UUID ...]
A machine registers, waits, "installs" what it is told and phones home; when it is freed it boots again.
"""
from __future__ import annotations

import http.client
import json
import struct
import sys
import threading
import urllib.request

URL, TOKEN, PARTITION, CORES, LEAVES = sys.argv[1:6]
GIB = 1 << 30
INFRA = "metalstack.infra.v2."


def call(token, method, message):
    """A call of Connect with JSON."""
    request = urllib.request.Request(
        "%s/%s" % (URL, method), json.dumps(message).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + token})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def stream(token, method, message):
    """The messages of a stream of Connect, until it ends."""
    body = json.dumps(message).encode()
    connection = http.client.HTTPConnection(URL.split("//")[1], timeout=600)
    connection.request("POST", "/" + method, struct.pack(">BI", 0, len(body)) + body, {
        "Content-Type": "application/connect+json", "Authorization": "Bearer " + token})
    answer = connection.getresponse()
    while True:
        head = answer.read(5)
        if len(head) < 5:
            return
        flags, length = struct.unpack(">BI", head)
        content = answer.read(length)
        if flags & 2:
            return
        yield json.loads(content)


class Rack:
    """The machines of a partition."""

    def __init__(self):
        wanted = {"user": "metal-stack", "tokenCreateRequest": {
            "description": "rack of " + PARTITION, "expires": "3600s",
            "infraRole": "INFRA_ROLE_EDITOR",
            "labels": {"labels": {"metalmesh.dev/partition": PARTITION}}}}
        made = call(TOKEN, "metalstack.admin.v2.TokenService/Create", wanted)
        self.token = made["secret"]

    def switch(self, side):
        """A leaf with a port for each machine."""
        ports = [{"name": "Ethernet%d" % port, "identifier": "Eth%d" % port} for port in range(8)]
        call(self.token, INFRA + "SwitchService/Register", {"switch": {
            "id": "leaf%d-%s" % (side, PARTITION), "partition": PARTITION, "rack": "rack-1",
            "managementIp": "10.9.1.%d" % (side + 1), "nics": ports,
            "replaceMode": "SWITCH_REPLACE_MODE_OPERATIONAL",
            "os": {"vendor": "SWITCH_OS_VENDOR_SONIC", "version": "202311",
                   "metalCoreVersion": "v0.18"}}})

    def hardware(self, number):
        """What a machine reports of itself.

        Its neighbours are no switches that control knows. In a partition with leaves, which have no
        agents that would move ports, such machines wait and are nobody's.
        """
        nics = [{"mac": "02:%02x:00:00:0%d:0%d" % (int(CORES) % 256, side, number),
                 "name": "eth%d" % side,
                 "neighbors": [{"name": "Eth1/1", "hostname": "spare-%d" % side}]}
                for side in range(2)]
        return {"memory": str(2 * GIB), "disks": [{"name": "/dev/sda", "size": str(20 * GIB)}],
                "cpus": [{"cores": int(CORES), "threads": int(CORES)}], "nics": nics}

    def bmc(self, number, power):
        """A BMC in a report."""
        return {"address": "10.9.%d.%d:623" % (int(CORES) % 256, number + 1), "user": "metal",
                "mac": "02:%02x:00:00:09:0%d" % (int(CORES) % 256, number), "password": "secret",
                "powerState": power}

    def boot(self, uuid, number):
        """From power-on to a system that phones home, once a project wants the machine."""
        call(self.token, INFRA + "BootService/Dhcp", {"uuid": uuid, "partition": PARTITION})
        made = call(self.token, INFRA + "BootService/MachineToken",
                    {"uuid": uuid, "user": "pixiecore", "expires": "3600s"})
        own = made["secret"]
        self.tell(uuid, "PREPARING")
        self.tell(uuid, "REGISTERING")
        call(own, INFRA + "BootService/Register", {
            "uuid": uuid, "partition": PARTITION, "hardware": self.hardware(number),
            "bmc": self.bmc(number, "ON"), "bios": {"version": "2.4"}})
        # The agent of the BMCs reads it, too: a machine whose BMC nobody reaches is nobody's.
        self.report(uuid, number, "ON")
        for _order in stream(own, INFRA + "BootService/Wait", {"uuid": uuid}):
            self.tell(uuid, "INSTALLING")
            # Before the report: its answer is an order to boot from the disk.
            self.tell(uuid, "BOOTING_NEW_KERNEL")
            call(own, INFRA + "BootService/InstallationSucceeded",
                 {"uuid": uuid, "consolePassword": "console"})
            return

    def tell(self, uuid, event):
        """Something happened to a machine; control takes the events of a boot in their order alone."""
        told = {uuid: {"event": "MACHINE_PROVISIONING_EVENT_TYPE_" + event}}
        call(self.token, INFRA + "EventService/Send", {"events": told})

    def report(self, uuid, number, power):
        """The BMC's state after an order."""
        call(self.token, INFRA + "BMCService/UpdateBMCInfo", {
            "partition": PARTITION, "bmcReports": [{"uuid": uuid, "bmc": self.bmc(number, power)}]})

    def obey(self, uuids):
        """Carries out the orders of BMCs."""
        for order in stream(self.token, INFRA + "BMCService/WaitForBMCCommand",
                            {"partition": PARTITION}):
            uuid, command = order["uuid"], order["bmcCommand"].rsplit("COMMAND_", 1)[-1]
            number = uuids.index(uuid)
            call(self.token, INFRA + "BMCService/BMCCommandDone", {"commandId": order["commandId"]})
            print(uuid, command, flush=True)
            if "LED" in command:
                continue
            self.report(uuid, number, "OFF" if command == "OFF" else "ON")
            if command == "BOOT_FROM_DISK":
                self.tell(uuid, "PHONED_HOME")
            elif command != "OFF":
                self.start(uuid, number)

    def start(self, uuid, number):
        """Boots a machine beside the others."""
        threading.Thread(target=self.boot, args=(uuid, number), daemon=True).start()


def main():
    rack, uuids = Rack(), sys.argv[6:]
    for side in range(int(LEAVES)):
        rack.switch(side)
    for number, uuid in enumerate(uuids):
        rack.start(uuid, number)
    rack.obey(uuids)


main()
