"""A site with one of each kind of object that the published contract has: networks of each type and
address family, machines in each phase, a firewall, tokens with each kind of right.
"""

import threading
import uuid as uuids

import image_server
from caller import HOUR, NEWEST, wait_until
from world import GIB, Site

# A public key of nobody's.
SSH_KEY = ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + "A" * 42 + " web@example.com")
TEAM = {"labels": {"team": "shop"}}


class Estate(Site):
    """The objects that properties are tried on. `build` makes all of them."""

    def build(self):
        for part in (self.catalogue, self.people, self.networks, self.agents,
                     self.more_of_the_catalogue, self.more_networks, self.ports,
                     self.tenants_machine, self.firewall, self.waiting_machine, self.reports,
                     self.more_tokens):
            part()

    def more_of_the_catalogue(self):
        """Objects with every field set, and a second one of some kinds."""
        admin, tag = self.admin, self.tag
        admin("admin.PartitionService/Update", id=tag, updateMeta=NEWEST,
              dnsServers=[{"ip": "10.9.0.53"}, {"ip": "2001:db8::53"}],
              ntpServers=[{"address": "ntp.example"}, {"address": "10.9.0.123"}],
              mgmtServiceAddresses=["10.9.0.5:443", "10.9.0.6:443"],
              labels={"replace": TEAM})
        admin("admin.PartitionService/Create", partition={"id": f"{tag}-six",
                                                          "description": "IPv6"})
        admin("admin.SizeService/Update", id=tag, updateMeta=NEWEST, description="one socket",
              labels={"replace": TEAM})
        limit = {"type": "SIZE_CONSTRAINT_TYPE_GPU", "min": 4, "max": 8, "identifier": "H100*"}
        admin("admin.SizeService/Create", size={"id": f"{tag}-gpu", "constraints": [limit]})
        admin("admin.ImageService/Update", id=self.image, updateMeta=NEWEST,
              description="stable")
        for name, feature, kind in (("firewall-3.0.1", "FIREWALL", "SUPPORTED"),
                                    (f"{tag}-13.0.0", "MACHINE", "PREVIEW")):
            admin("admin.ImageService/Create", image={
                "id": name, "url": image_server.url(name), "meta": {"labels": TEAM},
                "features": [f"IMAGE_FEATURE_{feature}"],
                "classification": f"IMAGE_CLASSIFICATION_{kind}"})
        self.layout()
        admin("admin.SizeImageConstraintService/Update", size=tag, updateMeta=NEWEST,
              description="what runs")
        self.owner("api.TenantService/Update", login=self.tenant, updateMeta=NEWEST,
                   labels={"replace": TEAM})
        self.owner("api.ProjectService/Update", project=self.project, updateMeta=NEWEST,
                   labels={"replace": TEAM})
        self.kept = admin("admin.SizeReservationService/Create", sizeReservation={
            "name": "first", "description": "for the sale", "project": self.project,
            "size": f"{tag}-gpu", "amount": 2, "partitions": [tag, f"{tag}-six"],
            "meta": {"labels": TEAM}}).size_reservation.id

    def used_by(self, image):
        """The machines that an image is on, as the usage of images shows them."""
        machines = self.admin("admin.MachineService/List").machines
        found = sorted(one.uuid for one in machines if one.allocation.image.id == image)
        return {"used_by": found} if found else {}

    def layout(self):
        """A layout with RAID and LVM."""
        disks = [{"device": f"/dev/sd{disk}", "partitions": [
            {"number": 1, "size": 500, "gptType": "GPT_TYPE_BOOT", "label": f"efi-{disk}"},
            {"number": 2, "size": 0, "gptType": "GPT_TYPE_LINUX_RAID"}]} for disk in "ab"]
        self.admin("admin.FilesystemService/Create", filesystemLayout={
            "id": f"{self.tag}-raid", "name": "two disks", "description": "mirrored",
            "disks": disks, "constraints": {"sizes": [f"{self.tag}-gpu"]},
            "raid": [{"arrayName": "/dev/md0", "devices": ["/dev/sda2", "/dev/sdb2"],
                      "level": "RAID_LEVEL_1"}],
            "volumeGroups": [{"name": "vg0", "devices": ["/dev/md0"], "tags": ["os"]}],
            "logicalVolumes": [{"name": "root", "volumeGroup": "vg0", "size": 5000,
                                "lvmType": "LVM_TYPE_LINEAR"}],
            "filesystems": [
                {"device": "/dev/sda1", "format": "FORMAT_VFAT", "path": "/boot/efi",
                 "label": "efi"},
                {"device": "/dev/vg0/root", "format": "FORMAT_EXT4", "path": "/",
                 "mountOptions": ["noatime"]}]})

    def more_networks(self):
        """Each type of network, IPv4, IPv6 and dual-stack, and an address in each."""
        admin, owner, tag, of = self.admin, self.owner, self.tag, {"project": self.project}
        here, six = {"partition": tag}, {"partition": f"{tag}-six"}
        kinds = {
            f"underlay-{tag}": ("UNDERLAY", "10.200.0.0/24", here),
            f"external-{tag}": ("EXTERNAL", "192.0.2.0/24", {
                **here, "vrf": 77, "natType": "NAT_TYPE_IPV4_MASQUERADE",
                "destinationPrefixes": ["0.0.0.0/0"], "labels": TEAM}),
            f"spaces-{tag}": ("SUPER_NAMESPACED", "172.16.0.0/16", {
                "defaultChildPrefixLength": {"ipv4": 28}, "minChildPrefixLength": {"ipv4": 24},
                "additionalAnnouncableCidrs": ["10.201.0.0/16"]}),
            f"both-{tag}": ("SUPER", "10.90.0.0/16", {
                **six, "defaultChildPrefixLength": {"ipv4": 24, "ipv6": 64}}),
        }
        for name, (kind, prefix, fields) in kinds.items():
            prefixes = [prefix, "2001:db8:90::/48"] if name.startswith("both") else [prefix]
            admin("admin.NetworkService/Create", id=name, prefixes=prefixes,
                  type=f"NETWORK_TYPE_{kind}", **fields)
        self.shared = admin("admin.NetworkService/Create", **of, name="shared",
                            parentNetwork=f"super-{tag}",
                            type="NETWORK_TYPE_CHILD_SHARED").network.id
        child = lambda **fields: owner("api.NetworkService/Create", **of, **fields).network.id
        self.both = child(**six, name="both", description="of both families", labels=TEAM)
        self.six = child(**six, name="six", addressFamily="NETWORK_ADDRESS_FAMILY_V6")
        self.space = child(parentNetwork=f"spaces-{tag}", name="space")
        ip = lambda **fields: owner("api.IPService/Create", **of, **fields).ip.ip
        self.ip = ip(network=self.network, name="web", description="shop front", labels=TEAM)
        self.ip_six = ip(network=self.six, type="IP_TYPE_STATIC")
        self.ip_space = ip(network=self.space, name="inner")
        self.ip_both = ip(network=self.both, addressFamily="IP_ADDRESS_FAMILY_V6")

    def ports(self):
        """A switch with a port for each machine, and all that an agent tells of a switch."""
        self.agent("infra.SwitchService/Register", switch={
            "id": self.leaf, "partition": self.tag, "rack": "rack-1", "room": "hall-1",
            "description": "left", "managementIp": "10.9.1.1", "managementUser": "admin",
            "replaceMode": "SWITCH_REPLACE_MODE_OPERATIONAL", "consoleCommand": "ssh leaf",
            "nics": [{"name": name, "identifier": f"Eth1/{at}", "mac": f"02:00:00:00:ee:0{at}"}
                     for at, name in enumerate(
                         ("Ethernet0", "Ethernet4", "Ethernet8"), start=1)],
            "os": {"vendor": "SWITCH_OS_VENDOR_SONIC", "version": "202311",
                   "metalCoreVersion": "v0.18"}})
        self.agent("infra.SwitchService/Heartbeat", id=self.leaf, duration="0.25s")

    def boot(self, node, number, mac):
        """A machine that booted and registered: its hammer's calls."""
        self.agent("infra.BootService/Dhcp", uuid=node, partition=self.tag)
        hammer = self.admin.as_(self.agent("infra.BootService/MachineToken", uuid=node,
                                           user="pixiecore", expires=HOUR).secret)
        hammer("infra.BootService/Register", **self.report(node, number, mac))
        return hammer

    def report(self, node, number, mac):
        """The registration that a machine's hammer sends."""
        port = {"mac": mac, "name": "eth0", "neighbors": [
            {"name": f"Eth1/{number}", "identifier": f"Eth1/{number}",
             "mac": f"02:00:00:00:aa:0{number}", "hostname": switch}
            for switch in (self.leaf, "spare")]}
        hardware = {"memory": 2 * GIB, "nics": [port],
                    "disks": [{"name": "/dev/sda", "size": (20 + number) * GIB}],
                    "cpus": [{"cores": self.number, "threads": self.number}]}
        return {"uuid": node, "partition": self.tag, "bmc": self.bmc(number),
                "bios": {"version": "2.4"}, "hardware": hardware}

    def bmc(self, number):
        return {"address": f"10.9.0.{number}:623", "mac": f"02:00:00:00:09:0{number}",
                "user": "metal", "password": "from-hammer", "interface": f"lan-{number}"}

    def wait_for_orders(self, node, hammer):
        """The machine waits until it is allocated, or for as long as the script lives."""
        orders = hammer.listen("infra.BootService/Wait", uuid=node)
        thread = threading.Thread(daemon=True, target=lambda: next(orders))
        thread.start()
        return thread

    def tenants_machine(self):
        """A machine with every choice that its tenant has."""
        self.allocate(hostname="web-1", description="sells", sshPublicKeys=[SSH_KEY],
                      labels=TEAM, placementLabels={"labels": {"spread": "shop"}},
                      dnsServers=[{"ip": "10.9.0.54"}], ntpServers=[{"address": "ntp.example"}],
                      userdata="IyEvYmluL3NoCg==")

    def firewall(self):
        """A firewall of the same project, installed."""
        self.fire = str(uuids.uuid4())
        hammer = self.boot(self.fire, 2, "02:00:00:00:01:02")
        waits = self.wait_for_orders(self.fire, hammer)
        rule = {"protocol": "IP_PROTOCOL_TCP", "ports": [443], "comment": "out"}
        into = {**rule, "from": ["10.0.0.0/8"], "to": ["10.1.0.0/24"], "comment": ""}
        self.create_machine(
            project=self.project, name="gate", partition=self.tag, size=self.tag,
            image="firewall-3.0", filesystemLayout="default",
            allocationType="MACHINE_ALLOCATION_TYPE_FIREWALL",
            networks=[{"network": f"external-{self.tag}"}, {"network": self.network}],
            firewallSpec={"firewallRules": {"egress": [{**rule, "to": ["0.0.0.0/0"]}],
                                            "ingress": [into]}})
        waits.join(20)
        hammer("infra.BootService/InstallationSucceeded", uuid=self.fire,
               consolePassword="console")
        self.command("MACHINE_BMC_COMMAND_BOOT_FROM_DISK")

    def waiting_machine(self):
        """A machine that nobody has."""
        self.idle = str(uuids.uuid4())
        self.wait_for_orders(self.idle, self.boot(self.idle, 3, "02:00:00:00:01:03"))
        query = {"uuid": self.idle, "waiting": True}
        wait_until(lambda: self.admin("admin.MachineService/List", query=query).machines)

    def reports(self):
        """The BMC agent tells what it knows."""
        fru = {"chassisPartNumber": "CH-1", "chassisPartSerial": "CS-1", "boardMfg": "Maker",
               "boardMfgSerial": "BS-1", "boardPartNumber": "BP-1",
               "productManufacturer": "Maker", "productPartNumber": "PP-1",
               "productSerial": "PS-1"}
        self.agent("infra.BMCService/UpdateBMCInfo", partition=self.tag, bmcReports=[
            {"uuid": node, "bmc": {**self.bmc(at), "powerState": "ON"}, "fru": {
                name: f"{value}{at}" for name, value in fru.items()}}
            for at, node in enumerate((self.node, self.fire, self.idle), start=1)])

    def more_tokens(self):
        """Tokens of each kind of right."""
        owner, admin, of = self.owner, self.admin, self.project
        self.token = owner(
            "api.TokenService/Create", description="CI", expires=HOUR, labels=TEAM,
            projectRoles={of: "PROJECT_ROLE_VIEWER"},
            tenantRoles={self.tenant: "TENANT_ROLE_VIEWER"}, permissions=[
                {"self": {"methods": ["/metalstack.api.v2.UserService/Get"]}},
                {"project": {"project": of,
                             "methods": ["/metalstack.api.v2.IPService/Create"]}}]).token.uuid
        create = lambda **fields: admin("api.TokenService/Create", expires=HOUR, **fields)
        self.admins_token = create(
            description="backup", adminRole="ADMIN_ROLE_VIEWER", permissions=[
                {"admin": {"methods": ["/metalstack.admin.v2.TenantService/List"]}}]).token.uuid
        self.infra_token = create(
            description="agent", infraRole="INFRA_ROLE_VIEWER",
            machineRoles={self.node: "MACHINE_ROLE_VIEWER"}).token.uuid

