"""A site of the published contract, made through the published client: an operator's catalogue,
people, networks, agents, and the life of a machine. The calls after each call show what it did.
"""

import threading
import uuid as uuids

from connectrpc.code import Code
from connectrpc.errors import ConnectError

import image_server
from caller import CONTRACT, HOUR, NEWEST, OF_ONESELF, refused, wait_until

GIB = 1 << 30


class Site:
    """The objects that one combination of protocol and codec works on."""

    def __init__(self, tag, number, admin):
        self.tag, self.number, self.admin = tag, number, admin
        self.node = str(uuids.uuid4())
        # Nothing was ever heard of this one but by its BMC.
        self.silent = str(uuids.uuid4())
        self.mac = f"02:00:00:00:00:0{number}"
        self.image = f"{tag}-12.0.1"
        self.image_url = image_server.url(f"{tag}.tar.zst")
        self.leaf = f"leaf-{tag}"

    def catalogue(self):
        """Partition, size, image, layout and super network, which an operator provides."""
        admin, tag = self.admin, self.tag
        boot = {"imageUrl": "http://x.example/i", "kernelUrl": "http://x.example/k"}
        admin("admin.PartitionService/Create", partition={"id": tag, "bootConfiguration": boot})
        admin("admin.PartitionService/Update", id=tag, updateMeta=NEWEST, description="a hall")
        assert admin("api.PartitionService/Get", id=tag).partition.description == "a hall"
        limits = [("CORES", self.number, self.number), ("MEMORY", GIB, 4 * GIB),
                  ("STORAGE", GIB, 100 * GIB)]
        limits = [{"type": f"SIZE_CONSTRAINT_TYPE_{kind}", "min": low, "max": high}
                  for kind, low, high in limits]
        admin("admin.SizeService/Create", size={"id": tag, "constraints": limits})
        admin("admin.SizeService/Update", id=tag, updateMeta=NEWEST, name="small")
        assert admin("api.SizeService/Get", id=tag).size.name == "small"
        # Without a label for its digest, of which the contract knows nothing.
        made = admin("admin.ImageService/Create", image={
            "id": self.image, "url": self.image_url,
            "features": ["IMAGE_FEATURE_MACHINE"],
            "classification": "IMAGE_CLASSIFICATION_SUPPORTED"})
        assert dict(made.image.meta.labels.labels) == image_server.labels(self.image_url), made
        admin("admin.ImageService/Update", id=self.image, updateMeta=NEWEST, name="Debian")
        assert admin("api.ImageService/Get", id=self.image).image.name == "Debian"
        disk = {"device": "/dev/sda", "partitions": [
            {"number": 1, "size": 500, "gptType": "GPT_TYPE_BOOT"},
            {"number": 2, "size": 0, "gptType": "GPT_TYPE_LINUX"}]}
        roots = [{"device": "/dev/sda1", "format": "FORMAT_VFAT", "path": "/boot/efi"},
                 {"device": "/dev/sda2", "format": "FORMAT_EXT4", "path": "/"}]
        only = {"sizes": [tag], "images": {tag: ">= 12"}}
        admin("admin.FilesystemService/Create", filesystemLayout={
            "id": tag, "disks": [disk], "filesystems": roots, "constraints": only})
        admin("admin.FilesystemService/Update", id=tag, updateMeta=NEWEST, name="one disk")
        layout = admin("api.FilesystemService/Get", id=tag).filesystem_layout
        assert layout.name == "one disk" and len(layout.filesystems) == 2
        match = admin("admin.FilesystemService/Match",
                      sizeAndImage={"size": tag, "image": self.image})
        assert match.filesystem_layout.id == tag
        rules = [{"image": tag, "semverMatch": ">= 12"}]
        admin("admin.SizeImageConstraintService/Create", size=tag, imageConstraints=rules)
        admin("admin.SizeImageConstraintService/Update", size=tag, updateMeta=NEWEST, name="new")
        got = admin("admin.SizeImageConstraintService/Get", size=tag)
        assert got.size_image_constraint.name == "new"
        prefixes = [f"10.{self.number}.0.0/16"]
        admin("admin.NetworkService/Create", id=f"super-{tag}", partition=tag, prefixes=prefixes,
              type="NETWORK_TYPE_SUPER", defaultChildPrefixLength={"ipv4": 24})
        admin("admin.NetworkService/Update", id=f"super-{tag}", updateMeta=NEWEST, name="super",
              prefixes=prefixes)
        assert admin("admin.NetworkService/Get", id=f"super-{tag}").network.name == "super"

    def people(self):
        """Tenants, a project, members, invites, tokens."""
        admin, tag = self.admin, self.tag
        for login in (tag, f"{tag}-friend"):
            admin("admin.TenantService/Create", name=login)
        self.owner = self.token_of(tag, "OWNER")
        self.friend = self.token_of(f"{tag}-friend", "VIEWER")
        owner = self.owner
        own = owner("api.TenantService/Create", name=f"{tag}-own").tenant.login
        owner("api.TenantService/Update", login=own, updateMeta=NEWEST, description="a shop")
        assert owner("api.TenantService/Get", login=own).tenant.description == "a shop"
        self.project = owner("api.ProjectService/Create", login=own, name="web",
                             description="what is sold").project.uuid
        owner("api.ProjectService/Update", project=self.project, updateMeta=NEWEST, name="shop")
        assert owner("api.ProjectService/Get", project=self.project).project.name == "shop"
        self.tenant = own
        self.members("Tenant", "TENANT", {"login": own})
        self.members("Project", "PROJECT", {"project": self.project})
        admin("admin.TenantService/AddMember", tenant=own, member=f"{tag}-friend",
              role="TENANT_ROLE_VIEWER")
        admin("admin.TenantService/RemoveMember", tenant=own, member=f"{tag}-friend")
        self.tokens()

    def token_of(self, user, role):
        """How somebody calls who has that role wherever it is a member."""
        wanted = {"projectRoles": {"*": f"PROJECT_ROLE_{role}"}, "expires": HOUR,
                  "tenantRoles": {"*": f"TENANT_ROLE_{role}"},
                  "permissions": [{"self": {"methods": OF_ONESELF}}]}
        made = self.admin("admin.TokenService/Create", user=user, tokenCreateRequest=wanted)
        return self.admin.as_(made.secret)

    def members(self, kind, role, of):
        """Invited, taken in, changed, left, added, removed."""
        owner, friend = self.owner, self.friend
        service = f"api.{kind}Service"
        member = {**of, "member": f"{self.tag}-friend"}
        viewer, editor = f"{role}_ROLE_VIEWER", f"{role}_ROLE_EDITOR"
        for answer in ("InviteDelete", "InviteAccept"):
            secret = owner(f"{service}/Invite", **of, role=viewer).invite.secret
            assert len(owner(f"{service}/InvitesList", **of).invites) == 1
            friend(f"{service}/InviteGet", secret=secret)
            if answer == "InviteDelete":
                owner(f"{service}/InviteDelete", **of, secret=secret)
            else:
                friend(f"{service}/InviteAccept", secret=secret)
        # The contract lets viewers leave, and nobody else.
        for other in (editor, viewer):
            owner(f"{service}/UpdateMember", **member, role=other)
        friend(f"{service}/Leave", **of)
        owner(f"{service}/AddMember", **member, role=viewer)
        owner(f"{service}/RemoveMember", **member)

    def tokens(self):
        owner = self.owner
        permissions = [{"self": {"methods": ["/metalstack.api.v2.TokenService/Refresh",
                                             "/metalstack.api.v2.UserService/Get"]}}]
        made = owner("api.TokenService/Create", description="CI", expires=HOUR,
                     permissions=permissions)
        ci = owner.as_(made.secret)
        assert ci("api.UserService/Get").user.login == self.tag
        fresh = ci("api.TokenService/Refresh").token.uuid
        owner("api.TokenService/Update", uuid=fresh, updateMeta=NEWEST, description="CI, fresh")
        assert owner("api.TokenService/Get", uuid=fresh).token.description == "CI, fresh"
        assert len(owner("api.TokenService/List").tokens) >= 2
        owner("api.TokenService/Revoke", uuid=fresh)
        self.admin("admin.TokenService/List")
        self.admin("admin.TokenService/Revoke", uuid=made.token.uuid, user=self.tag)

    def networks(self):
        owner, of = self.owner, {"project": self.project}
        bases = owner("api.NetworkService/ListBaseNetworks", **of).networks
        assert f"super-{self.tag}" in [one.id for one in bases]
        self.network = owner("api.NetworkService/Create", **of, name="private",
                             partition=self.tag).network.id
        owner("api.NetworkService/Update", **of, id=self.network, updateMeta=NEWEST, name="inner")
        assert owner("api.NetworkService/Get", **of, id=self.network).network.name == "inner"
        assert len(owner("api.NetworkService/List", **of).networks) == 1
        ip = owner("api.IPService/Create", **of, network=self.network, name="web").ip.ip
        owner("api.IPService/Update", **of, ip=ip, updateMeta=NEWEST, type="IP_TYPE_STATIC")
        owner("api.IPService/Get", **of, ip=ip)
        assert len(owner("api.IPService/List", **of).ips) == 1
        assert ip in [one.ip for one in self.admin("admin.IPService/List").ips]
        owner("api.IPService/Delete", **of, ip=ip)
        kept = self.admin("admin.SizeReservationService/Create", sizeReservation={
            "name": "first", "project": self.project, "size": self.tag, "amount": 1,
            "partitions": [self.tag]})
        kept = kept.size_reservation.id
        self.admin("admin.SizeReservationService/Update", id=kept, updateMeta=NEWEST,
                   partitions=[self.tag], name="kept")
        assert owner("api.SizeReservationService/Get", **of, id=kept).size_reservation.amount == 1
        assert len(owner("api.SizeReservationService/List", **of).size_reservations) == 1
        self.admin("admin.SizeReservationService/List")
        self.admin("admin.SizeReservationService/Delete", id=kept)

    def agents(self):
        """The published stack's agents of the partition; a machine boots and waits."""
        wanted = {"infraRole": "INFRA_ROLE_EDITOR", "expires": HOUR,
                  "labels": {"labels": {"metalmesh.dev/partition": self.tag}}}
        agent = self.agent = self.admin.as_(self.admin(
            "admin.TokenService/Create", user="metal-stack", tokenCreateRequest=wanted).secret)
        agent("infra.ComponentService/Ping", type="COMPONENT_TYPE_PIXIECORE", interval="60s",
              identifier=f"pixie-{self.tag}", startedAt="2026-01-01T00:00:00Z",
              version={"version": "v0.1", "revision": "r", "gitSha1": "a", "buildDate": "b"})
        for leaf in (f"{self.leaf}-old", f"{self.leaf}-new", self.leaf):
            agent("infra.SwitchService/Register", switch={
                "id": leaf, "partition": self.tag, "rack": "rack-1", "managementIp": "10.9.1.1",
                "replaceMode": "SWITCH_REPLACE_MODE_OPERATIONAL",
                "nics": [{"name": "Ethernet0", "identifier": "Eth1/1"}],
                "os": {"vendor": "SWITCH_OS_VENDOR_SONIC", "version": "202311",
                       "metalCoreVersion": "v0.18"}})
        agent("infra.SwitchService/Heartbeat", id=self.leaf, duration="0.25s")
        assert agent("infra.SwitchService/Get", id=self.leaf).switch.rack == "rack-1"
        agent("infra.BootService/Dhcp", uuid=self.node, partition=self.tag)
        agent("infra.BootService/Boot", mac=self.mac, partition=self.tag)
        made = agent("infra.BootService/MachineToken", uuid=self.node, user="pixiecore",
                     expires=HOUR)
        hammer = self.hammer = self.admin.as_(made.secret)
        hammer("infra.BootService/SendEvent", uuid=self.node, event={
            "event": "MACHINE_PROVISIONING_EVENT_TYPE_PREPARING"})
        bmc = {"address": f"10.9.0.{self.number}:623", "mac": f"02:00:00:00:09:0{self.number}",
               "user": "metal", "password": "from-hammer"}
        # It hears two switches; nobody manages the second one.
        port = {"mac": self.mac, "name": "eth0", "neighbors": [
            {"name": "Eth1/1", "identifier": "Eth1/1", "hostname": switch}
            for switch in (self.leaf, "spare")]}
        size = hammer("infra.BootService/Register", uuid=self.node, partition=self.tag, bmc=bmc,
                      bios={"version": "2.4"},
                      hardware={"memory": 2 * GIB, "nics": [port],
                                "disks": [{"name": "/dev/sda", "size": 20 * GIB}],
                                "cpus": [{"cores": self.number, "threads": self.number}]}).size
        assert size == self.tag
        hammer("infra.BootService/SuperUserPassword", uuid=self.node)
        other = {**bmc, "address": f"10.9.1.{self.number}:623"}
        told = agent("infra.BMCService/UpdateBMCInfo", partition=self.tag, bmcReports=[
            {"uuid": self.node, "bmc": {**bmc, "powerState": "ON"}},
            {"uuid": self.silent, "bmc": other}])
        assert list(told.updated_machines) == [self.node]
        assert list(told.created_machines) == [self.silent]

    def machine(self):
        """Allocated, installed, used and given back."""
        self.allocate()
        self.use()

    def allocate(self, **wanted):
        """The tenant's machine, installed and started."""
        owner, of = self.owner, {"project": self.project}
        orders = []
        waiting = threading.Thread(target=lambda: orders.append(
            self.hammer("infra.BootService/Wait", uuid=self.node)))
        waiting.start()
        owner("api.SizeImageConstraintService/Try", size=self.tag, image=self.image)
        made = self.create_machine(
            **of, name="web-1", partition=self.tag, size=self.tag, image=self.image,
            networks=[{"network": self.network}],
            allocationType="MACHINE_ALLOCATION_TYPE_MACHINE", **wanted)
        assert made.machine.uuid == self.node
        pinned = made.machine.allocation.image.meta.labels.labels
        assert dict(pinned) == image_server.labels(self.image_url), made
        waiting.join(20)
        assert orders[0].allocation.project == self.project
        self.hammer("infra.BootService/InstallationSucceeded", uuid=self.node,
                    consolePassword="console")
        self.command("MACHINE_BMC_COMMAND_BOOT_FROM_DISK")
        home = {"event": "MACHINE_PROVISIONING_EVENT_TYPE_PHONED_HOME"}
        assert self.agent("infra.EventService/Send", events={self.node: home}).events == 1

    def create_machine(self, **wanted):
        """Creates a machine as soon as one can be allocated, which a trial shows."""
        def is_there():
            try:
                return self.owner.trial()("api.MachineService/Create", **wanted)
            except ConnectError as error:
                if error.code != Code.RESOURCE_EXHAUSTED:
                    raise
                return None

        wait_until(is_there)
        return self.owner("api.MachineService/Create", **wanted)

    def use(self):
        """Changed, looked at, ordered about, given back."""
        owner, of = self.owner, {"project": self.project}
        own = {**of, "uuid": self.node}
        owner("api.MachineService/Update", **own, updateMeta=NEWEST, description="sells")
        got = owner("api.MachineService/Get", **own).machine
        assert got.allocation.description == "sells"
        assert len(owner("api.MachineService/List", **of).machines) == 1
        assert not owner("api.MachineService/GetBMC", **own).bmc_details.bmc_report.bmc.password
        owner("api.MachineService/BMCCommand", **own, command="MACHINE_BMC_COMMAND_RESET")
        self.command("MACHINE_BMC_COMMAND_RESET")
        self.machine_as_operator()
        owner("api.MachineService/Delete", **own)
        # Its switch takes the port out of the tenant's network before it boots again.
        self.command("MACHINE_BMC_COMMAND_OFF")
        self.agent("infra.SwitchService/Get", id=self.leaf)
        self.agent("infra.SwitchService/Heartbeat", id=self.leaf, duration="0.25s")
        for wanted in ("BOOT_FROM_PXE", "ON"):
            self.command(f"MACHINE_BMC_COMMAND_{wanted}")

    def command(self, wanted):
        """The BMC agent does what is ordered."""
        order = self.agent("infra.BMCService/WaitForBMCCommand", partition=self.tag)
        kinds = CONTRACT["admin.MachineService/BMCCommand"][2].input_type.fields_by_name
        kinds = kinds["command"].enum_type.values_by_name
        assert order.bmc_command == kinds[wanted].number, order
        self.agent("infra.BMCService/BMCCommandDone", commandId=order.command_id)

    def machine_as_operator(self):
        admin, one = self.admin, {"uuid": self.node}
        assert admin("admin.MachineService/Get", **one).machine.uuid == self.node
        here = {"partition": self.tag}
        assert len(admin("admin.MachineService/List", query=here).machines) == 2
        assert len(admin("admin.MachineService/ListBMC", query=here).bmc_details) == 2
        admin("admin.MachineService/GetBMC", **one)
        why = {"reason": "somebody asked for it"}
        assert admin("admin.MachineService/ConsolePassword", **one, **why).password == "console"
        asked = {"method": "/metalstack.admin.v2.MachineService/ConsolePassword",
                 "body": why["reason"]}
        wait_until(lambda: admin("admin.AuditService/List", query=asked).traces)
        admin("admin.MachineService/Issues")
        admin("admin.MachineService/SetState", **one, state="MACHINE_STATE_LOCKED",
              description="looked at")
        admin("admin.MachineService/SetState", **one, state="MACHINE_STATE_AVAILABLE")
        admin("admin.MachineService/BMCCommand", **one,
              command="MACHINE_BMC_COMMAND_IDENTIFY_LED_ON")
        self.command("MACHINE_BMC_COMMAND_IDENTIFY_LED_ON")
        admin("admin.PartitionService/Capacity", id=self.tag)
        used = admin("admin.ImageService/Usage", query={"id": self.image}).image_usage
        assert [list(it.used_by) for it in used] == [[self.node]]
        admin("admin.FilesystemService/Match", machineAndFilesystemlayout={
            "machine": self.node, "filesystemLayout": self.tag})

    def switches(self):
        admin = self.admin
        assert admin("admin.SwitchService/Get", id=self.leaf).switch.id == self.leaf
        admin("admin.SwitchService/List")
        admin("admin.SwitchService/ConnectedMachines")
        admin("admin.SwitchService/Update", id=self.leaf, updateMeta=NEWEST, description="left")
        admin("admin.SwitchService/Port", id=self.leaf, nicName="Ethernet0",
              status="SWITCH_PORT_STATUS_UP")

    def looks(self):
        """Lists that anybody, or any operator, reads."""
        for key in ("api.ImageService/List", "api.SizeService/List", "api.PartitionService/List",
                    "api.FilesystemService/List", "api.ProjectService/List",
                    "api.TenantService/List", "api.MethodService/List",
                    "api.MethodService/TokenScopedList"):
            self.owner(key)
        self.owner("api.ImageService/Latest", os=self.tag)
        nobody = self.admin.as_(None)
        nobody("api.VersionService/Get")
        nobody("api.HealthService/Get")
        for key in ("admin.NetworkService/List", "admin.ProjectService/List",
                    "admin.SizeImageConstraintService/List", "admin.TenantService/List"):
            self.admin(key)
        for who, key, of in ((self.owner, "api", {"login": self.tenant}),
                             (self.admin, "admin", {})):
            traces = who(f"{key}.AuditService/List", **of).traces
            who(f"{key}.AuditService/Get", **of, uuid=traces[0].uuid)
        found = self.admin("admin.ComponentService/List").components
        mine = next(it.uuid for it in found if it.identifier == f"pixie-{self.tag}")
        assert self.admin("admin.ComponentService/Get", uuid=mine).component.uuid == mine
        self.admin("admin.ComponentService/Delete", uuid=mine)

    def end(self):
        """Takes away again what was made."""
        admin, owner, tag = self.admin, self.owner, self.tag
        queue = admin("admin.TaskService/Queues").queues[0]
        tasks = admin("admin.TaskService/List", queue=queue).tasks
        done = next(it.id for it in tasks
                    if it.HasField("completed_at") and self.node in it.payload.decode())
        task = {"taskId": done, "queue": queue}
        assert admin("admin.TaskService/Get", **task).task.id == done
        admin("admin.TaskService/Delete", **task)
        admin("admin.MachineService/Delete", uuid=self.silent)
        # A living machine stays, and with it what it is in.
        refused(Code.FAILED_PRECONDITION,
                lambda: admin("admin.MachineService/Delete", uuid=self.node))
        admin("admin.SwitchService/Migrate", oldSwitch=f"{self.leaf}-old",
              newSwitch=f"{self.leaf}-new")
        for leaf in (f"{self.leaf}-old", f"{self.leaf}-new"):
            admin("admin.SwitchService/Delete", id=leaf, force=True)
        owner("api.NetworkService/Delete", project=self.project, id=self.network)
        owner("api.ProjectService/Delete", project=self.project)
        owner("api.TenantService/Delete", login=self.tenant)
        admin("admin.NetworkService/Delete", id=f"super-{tag}")
        admin("admin.SizeImageConstraintService/Delete", size=tag)
        admin("admin.FilesystemService/Delete", id=tag)
        admin("admin.ImageService/Delete", id=self.image)
        refused(Code.FAILED_PRECONDITION, lambda: admin("admin.SizeService/Delete", id=tag))
        admin("admin.SizeService/Create", size={"id": f"{tag}-none", "constraints": [
            {"type": "SIZE_CONSTRAINT_TYPE_CORES", "min": 100 + self.number,
             "max": 100 + self.number}]})
        admin("admin.SizeService/Delete", id=f"{tag}-none")
        admin("admin.PartitionService/Create", partition={"id": f"{tag}-none"})
        admin("admin.PartitionService/Delete", id=f"{tag}-none")

    def live(self):
        for part in (self.catalogue, self.people, self.networks, self.agents, self.machine,
                     self.switches, self.looks, self.end):
            part()
