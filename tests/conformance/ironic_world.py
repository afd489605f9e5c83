"""A site for scripts that drive Ironic's API: an operator's catalogue, projects with a token for
each role, and machines whose agents and BMCs are simulated by the calls of the published stack.
"""

import threading
import uuid

from ironic_calls import ADMIN, GONE, Api, Ironic, wait_until

GIB = 1 << 30
HOUR = "3600s"
PARTITION, SIZE, IMAGE, OS = "lab", "small", "debian-12.0.1", "debian"
IMAGE_URL = "http://images.example/debian.tar.zst"
IMAGE_SHA256 = "ab" * 32
LEAF = "leaf1"
CORES = 2
ROLES = ("admin", "manager", "member", "reader", "service")
ROLE_LABEL = "metalmesh.dev/openstack-role"


class Project:
    """A project, and a token of its owner for each role of Keystone."""

    def __init__(self, admin, name):
        self.name = name
        admin("admin.TenantService/Create", name=name)
        made = admin("api.ProjectService/Create", login=name, name=name, description="")
        self.id = made["project"]["uuid"]
        self.owner = Api(token(admin, name, {}, **self.roles()))
        self.tokens = {
            role: token(admin, name, {ROLE_LABEL: role}, **self.roles()) for role in ROLES}
        self.network = self.owner("api.NetworkService/Create", project=self.id,
                                  name=f"{name}-net", partition=PARTITION)["network"]["id"]

    def roles(self):
        return {"projectRoles": {self.id: "PROJECT_ROLE_OWNER"}}

    def as_(self, role):
        return Ironic(self.tokens[role])


def token(admin, user, labels, **rights):
    """The secret of a new token."""
    wanted = {"expires": HOUR, "labels": {"labels": labels}, "description": "test", **rights}
    return admin("admin.TokenService/Create", user=user, tokenCreateRequest=wanted)["secret"]


class World:
    """The site."""

    def __init__(self, *projects):
        self.admin = Api(ADMIN)
        self.catalogue()
        self.projects = {name: Project(self.admin, name) for name in projects}
        self.tokens = {role: self.system_token(role) for role in ROLES}
        self.site = Ironic(self.tokens["admin"])
        self.agent = Api(token(self.admin, "metal-stack", {"metalmesh.dev/partition": PARTITION},
                               infraRole="INFRA_ROLE_EDITOR"))
        self.machines = {}
        self.begin_agents()

    def system_token(self, role):
        made = self.admin("api.TokenService/Create", expires=HOUR, description=f"system {role}",
                          adminRole="ADMIN_ROLE_EDITOR", labels={"labels": {ROLE_LABEL: role}})
        return made["secret"]

    def catalogue(self):
        admin = self.admin
        boot = {"imageUrl": "http://x.example/i", "kernelUrl": "http://x.example/k"}
        admin("admin.PartitionService/Create",
              partition={"id": PARTITION, "bootConfiguration": boot})
        limits = [("CORES", CORES, CORES), ("MEMORY", GIB, 4 * GIB), ("STORAGE", GIB, 100 * GIB)]
        admin("admin.SizeService/Create", size={"id": SIZE, "constraints": [
            {"type": f"SIZE_CONSTRAINT_TYPE_{kind}", "min": str(low), "max": str(high)}
            for kind, low, high in limits]})
        digest = {"metalmesh.dev/digest": f"sha256:{IMAGE_SHA256}"}
        admin("admin.ImageService/Create", image={
            "id": IMAGE, "url": IMAGE_URL, "meta": {"labels": {"labels": digest}},
            "features": ["IMAGE_FEATURE_MACHINE"],
            "classification": "IMAGE_CLASSIFICATION_SUPPORTED"})
        # Ironic's clients name no layout: that of the machine's size and image is taken.
        disk = {"device": "/dev/sda", "partitions": [{"number": 1, "size": 0,
                                                      "gptType": "GPT_TYPE_LINUX"}]}
        root = {"device": "/dev/sda1", "format": "FORMAT_EXT4", "path": "/"}
        admin("admin.FilesystemService/Create", filesystemLayout={
            "id": "one-disk", "disks": [disk], "filesystems": [root],
            "constraints": {"sizes": [SIZE], "images": {OS: ">= 12"}}})
        admin("admin.NetworkService/Create", id="tenants", partition=PARTITION,
              prefixes=["10.1.0.0/16"], type="NETWORK_TYPE_SUPER",
              defaultChildPrefixLength={"ipv4": 24})

    def begin_agents(self):
        """A leaf that converges at once, and a BMC agent that does what is ordered."""
        self.agent("infra.SwitchService/Register", switch={
            "id": LEAF, "partition": PARTITION, "rack": "rack-1", "managementIp": "10.9.1.1",
            "replaceMode": "SWITCH_REPLACE_MODE_OPERATIONAL",
            "nics": [{"name": f"Ethernet{port}", "identifier": f"Eth1/{port}"}
                     for port in range(1, 33)],
            "os": {"vendor": "SWITCH_OS_VENDOR_SONIC", "version": "202311",
                   "metalCoreVersion": "v0.18"}})
        for work in (self.converge, self.obey):
            threading.Thread(target=work, daemon=True).start()

    def converge(self):
        while True:
            try:
                self.agent("infra.SwitchService/Get", id=LEAF)
                self.agent("infra.SwitchService/Heartbeat", id=LEAF, duration="0.25s")
            except GONE:
                # The next call has a fresh connection.
                pass
            threading.Event().wait(0.2)

    def obey(self):
        while True:
            try:
                for order in self.agent.stream("infra.BMCService/WaitForBMCCommand",
                                               partition=PARTITION):
                    self.carry_out(order)
            except GONE:
                # As above.
                pass
            threading.Event().wait(0.1)

    def carry_out(self, order):
        machine = self.machines.get(order.get("uuid"))
        if machine is None or not order.get("commandId"):
            return
        machine.order(order["bmcCommand"].removeprefix("MACHINE_BMC_COMMAND_"))
        self.agent("infra.BMCService/BMCCommandDone", commandId=order["commandId"])

    def machine(self, name, number, ident=None, macs=()):
        """A machine that booted and waits."""
        made = Machine(self, name, number, ident or str(uuid.uuid4()), macs)
        self.machines[made.id] = made
        made.boot()
        made.waits()
        return made


class Machine:
    """A machine with a BMC. What it is ordered changes its power, and lets it boot its hammer."""

    def __init__(self, world, name, number, ident, macs):
        self.world, self.name, self.number, self.id = world, name, number, ident
        self.macs = list(macs) or [f"02:00:00:00:00:{number:02x}"]
        self.is_on, self.from_network, self.orders = True, True, []
        self.allocation = None
        # One boot after the other; and the numbers of those that orders began, and that ended.
        self.boots, self.begun, self.ended = threading.Lock(), 0, 0

    def bmc(self):
        return {"address": f"10.9.0.{self.number}:623", "mac": f"02:00:00:00:09:{self.number:02x}",
                "user": "metal", "password": "from-hammer", "interface": "lan",
                "powerState": "ON" if self.is_on else "OFF"}

    def report(self):
        self.world.agent("infra.BMCService/UpdateBMCInfo", partition=PARTITION,
                         bmcReports=[{"uuid": self.id, "bmc": self.bmc()}])

    def card(self, at, mac):
        """A card, which hears a port of its own at the leaf."""
        port = f"Eth1/{self.number + 16 * at}"
        return {"mac": mac, "name": f"eth{at}", "neighbors": [
            {"name": port, "identifier": port, "mac": f"02:00:00:00:aa:{self.number:02x}",
             "hostname": switch} for switch in (LEAF, "spare")]}

    def boot(self):
        """Its hammer registers, and waits for an allocation in the background."""
        agent = self.world.agent
        agent("infra.BootService/Dhcp", uuid=self.id, partition=PARTITION)
        made = agent("infra.BootService/MachineToken", uuid=self.id, user="pixiecore",
                     expires=HOUR)
        hammer = Api(made["secret"])
        nics = [self.card(at, mac) for at, mac in enumerate(self.macs)]
        hardware = {"memory": str(2 * GIB), "nics": nics,
                    "disks": [{"name": "/dev/sda", "size": str(20 * GIB)}],
                    "cpus": [{"cores": CORES, "threads": CORES}]}
        bmc = self.bmc()
        bmc.pop("powerState")
        hammer("infra.BootService/Register", uuid=self.id, partition=PARTITION, bmc=bmc,
               bios={"version": "2.4", "vendor": "Bench", "date": "01/02/2026"},
               hardware=hardware)
        self.report()
        orders = hammer.stream("infra.BootService/Wait", uuid=self.id)
        threading.Thread(target=self.install, args=[hammer, orders], daemon=True).start()

    def install(self, hammer, orders):
        """Waits for an allocation, and installs it."""
        try:
            for message in orders:
                if "allocation" in message:
                    self.allocation = message["allocation"]
                    break
            else:
                return
            self.from_network = False
            hammer("infra.BootService/InstallationSucceeded", uuid=self.id,
                   consolePassword="console")
        except GONE:
            # It was booted anew meanwhile, or the script ends.
            return

    def order(self, command):
        """Obeys its BMC."""
        self.orders.append(command)
        boots = False
        if command == "BOOT_FROM_PXE":
            self.from_network = True
        elif command == "BOOT_FROM_DISK":
            self.from_network = False
            boots = True
        elif command == "OFF":
            self.is_on = False
        elif command in ("ON", "RESET", "CYCLE"):
            self.is_on = boots = True
        self.report()
        if boots:
            self.begun += 1
            threading.Thread(target=self.boot_anew, args=[self.from_network], daemon=True).start()

    def boot_anew(self, from_network):
        """Boots its hammer, or the installed system."""
        with self.boots:
            try:
                if from_network:
                    self.boot()
                else:
                    self.phone_home()
            except GONE:
                # It was deleted meanwhile, or the script ends.
                pass
            self.ended += 1

    def phone_home(self):
        event = {"event": "MACHINE_PROVISIONING_EVENT_TYPE_PHONED_HOME"}
        self.world.agent("infra.EventService/Send", events={self.id: event})

    def node(self):
        return self.world.site.ok("GET", f"/v1/nodes/{self.id}")

    def is_waiting(self):
        """True if it can be allocated: it is available, and no boot is under way."""
        return self.begun == self.ended and self.node()["provision_state"] == "available"

    def waits(self):
        """Until it can be allocated."""
        wait_until(self.is_waiting, f"node {self.name} is available")
