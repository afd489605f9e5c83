"""A waiting machine that falls silent is revived as often as it comes back; one that does not come
back is given up after three attempts.

Usage: ADMIN_TOKEN=... revival.py http://127.0.0.1:PORT AHEAD

AHEAD is the file that holds how far the server's wall clock is ahead of the real one; see `ahead.c`.
"""

import json
import os
import struct
import sys
import time

from google.protobuf import timestamp_pb2

from caller import Caller, wait_until
from contract import COMBINATIONS, http
from estate import Estate

# Attempts to revive a machine that does not come back.
ATTEMPTS_MAX = 3
# An attempt comes after an hour of silence.
SILENCE_S = 3600
# One step of the clock. The server judges nothing by a clock that jumps by more than an hour.
STEP_S = 55 * 60
# A partition whose agents were not heard for a minute is judged after they were heard for another.
RETURN_STEPS_S = (50, 50)
# More than the hours that pass here.
LIFE = f"{48 * 3600}s"


class Clock:
    """The server's wall clock."""

    def __init__(self, path):
        self.path, self.ahead_s = path, 0

    def advance(self, seconds):
        self.ahead_s += seconds
        with open(self.path, "r+b") as file:
            file.write(struct.pack("=q", self.ahead_s))

    def now_s(self):
        return time.time() + self.ahead_s


class Rack(Estate):
    """A partition with a machine, a switch and a BMC agent."""

    def __init__(self, url, secret, clock):
        admin = Caller(url, COMBINATIONS[0][1], secret, set())
        super().__init__("rack", 1, admin)
        self.clock = clock
        self.catalogue()
        wanted = {"infraRole": "INFRA_ROLE_EDITOR", "expires": LIFE,
                  "labels": {"labels": {"metalmesh.dev/partition": self.tag}}}
        self.agent = admin.as_(admin("admin.TokenService/Create", user="metal-stack",
                                     tokenCreateRequest=wanted).secret)
        self.ports()

    def come_up(self):
        """The machine boots into its installer, registers and says that it waits."""
        hammer = self.boot(self.node, 1, self.mac)
        hammer("infra.BootService/SendEvent", uuid=self.node, event={
            "event": "MACHINE_PROVISIONING_EVENT_TYPE_WAITING"})
        assert self.seen() == ("ALIVE", ""), self.seen()

    def seen(self):
        """How the machine is shown: whether it is alive, and its reason."""
        status = self.admin("admin.MachineService/Get", uuid=self.node).machine.status
        kinds = status.DESCRIPTOR.fields_by_name["liveliness"].enum_type.values_by_number
        liveliness = kinds[status.liveliness].name.removeprefix("MACHINE_LIVELINESS_")
        return liveliness, status.condition.description

    def fall_silent(self):
        """Nothing is heard of the machine for over an hour, while its partition is heard."""
        for _ in range(SILENCE_S // STEP_S + 1):
            self.clock.advance(STEP_S)
            advanced_s = self.clock.now_s()
            wait_until(lambda: self.hear_switch() and self.cluster_time_s() >= advanced_s)
        for step_s in RETURN_STEPS_S:
            self.clock.advance(step_s)
            self.hear_switch()
        wait_until(lambda: self.hear_switch() and self.seen()[0] == "DEAD")

    def hear_switch(self):
        return self.agent("infra.SwitchService/Heartbeat", id=self.leaf, duration="0.25s")

    def cluster_time_s(self):
        """The time by which the server judges."""
        answer = http.post(
            f"{self.admin.url}/metalmesh.admin.v1.ClusterService/Status", content=b"{}",
            headers={"Content-Type": "application/json",
                     "Authorization": f"Bearer {self.admin.secret}"})
        found = json.loads(answer.content)
        assert answer.status == 200 and "held" not in found["time"], found
        stamp = timestamp_pb2.Timestamp()
        stamp.FromJsonString(found["time"]["time"])
        return stamp.ToNanoseconds() / 1e9

    def be_revived(self):
        """The BMC agent is ordered to boot the machine anew, and does so."""
        for wanted in ("BOOT_FROM_PXE", "CYCLE"):
            self.command(f"MACHINE_BMC_COMMAND_{wanted}")
        assert "rebooted by its BMC" in self.seen()[1], self.seen()


def main():
    rack = Rack(sys.argv[1], os.environ["ADMIN_TOKEN"], Clock(sys.argv[2]))
    rack.come_up()
    revivals = 2 * ATTEMPTS_MAX
    for _ in range(revivals):
        rack.fall_silent()
        rack.be_revived()
        rack.come_up()
        print(f"up again, {rack.clock.ahead_s / 3600:.1f} h later", flush=True)
    for _ in range(ATTEMPTS_MAX):
        rack.fall_silent()
        rack.be_revived()
    rack.fall_silent()
    wait_until(lambda: rack.hear_switch() and "did not come up" in rack.seen()[1])
    rack.come_up()
    print(f"{revivals} revivals, {ATTEMPTS_MAX} attempts before the machine was given up")


main()
