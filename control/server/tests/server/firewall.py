"""A firewall's life through the published client: its agents, its project, and its release.

Usage: ADMIN_TOKEN=... firewall.py http://127.0.0.1:PORT. Makes a partition, a project and a
machine, then does what each line of its standard input says and answers with a line of JSON:
allocate, order (what hammer is told), show (what the project sees), release.
"""

import json
import os
import sys
import threading
import time
import uuid as uuids

import pyqwest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from google.protobuf import duration_pb2
from google.protobuf.json_format import MessageToDict

import metalstack.admin.v2.image_connect as admin_image
import metalstack.admin.v2.image_pb2 as admin_image_pb
import metalstack.admin.v2.network_connect as admin_network
import metalstack.admin.v2.network_pb2 as admin_network_pb
import metalstack.admin.v2.partition_connect as admin_partition
import metalstack.admin.v2.partition_pb2 as admin_partition_pb
import metalstack.admin.v2.size_connect as admin_size
import metalstack.admin.v2.size_pb2 as admin_size_pb
import metalstack.admin.v2.tenant_connect as admin_tenant
import metalstack.admin.v2.tenant_pb2 as admin_tenant_pb
import metalstack.admin.v2.token_connect as admin_token
import metalstack.admin.v2.token_pb2 as admin_token_pb
import metalstack.api.v2.common_pb2 as common_pb
import metalstack.api.v2.image_pb2 as image_pb
import metalstack.api.v2.machine_connect as machine
import metalstack.api.v2.machine_pb2 as machine_pb
import metalstack.api.v2.network_connect as network
import metalstack.api.v2.network_pb2 as network_pb
import metalstack.api.v2.partition_pb2 as partition_pb
import metalstack.api.v2.project_connect as project
import metalstack.api.v2.project_pb2 as project_pb
import metalstack.api.v2.size_pb2 as size_pb
import metalstack.api.v2.token_pb2 as token_pb
import metalstack.infra.v2.boot_connect as infra_boot
import metalstack.infra.v2.boot_pb2 as infra_boot_pb

URL = sys.argv[1]
ADMIN = os.environ["ADMIN_TOKEN"]
GIB = 1 << 30
NODE = str(uuids.uuid4())
PATIENCE_S = 60

transport = pyqwest.SyncHTTPTransport(http_version=pyqwest.HTTPVersion.HTTP2, timeout=30)
http = pyqwest.SyncClient(transport=transport)


def call(client, name, request, secret=ADMIN):
    headers = {"Authorization": f"Bearer {secret}"}
    return getattr(client(URL, http_client=http), name)(request, headers=headers)


def catalogue():
    """Partition, size, image for firewalls, and the networks that one needs."""
    call(admin_partition.PartitionServiceClientSync, "create",
         admin_partition_pb.PartitionServiceCreateRequest(
             partition=partition_pb.Partition(id="lab")))
    kind = size_pb.SizeConstraintType
    limits = [(kind.SIZE_CONSTRAINT_TYPE_CORES, 1, 4),
              (kind.SIZE_CONSTRAINT_TYPE_MEMORY, GIB, 4 * GIB),
              (kind.SIZE_CONSTRAINT_TYPE_STORAGE, GIB, 100 * GIB)]
    call(admin_size.SizeServiceClientSync, "create",
         admin_size_pb.SizeServiceCreateRequest(size=size_pb.Size(
             id="small", constraints=[size_pb.SizeConstraint(type=t, min=a, max=b)
                                      for t, a, b in limits])))
    labels = common_pb.Labels(labels={"metalmesh.dev/digest": "sha256:" + "ab" * 32})
    call(admin_image.ImageServiceClientSync, "create",
         admin_image_pb.ImageServiceCreateRequest(image=image_pb.Image(
             id="firewall-3.0.1", url="http://images.example/firewall.tar.zst",
             meta=common_pb.Meta(labels=labels),
             features=[image_pb.ImageFeature.IMAGE_FEATURE_FIREWALL],
             classification=image_pb.ImageClassification.IMAGE_CLASSIFICATION_SUPPORTED)))
    kind = network_pb.NetworkType
    nets = [
        dict(id="super", type=kind.NETWORK_TYPE_SUPER, prefixes=["10.0.0.0/16"],
             default_child_prefix_length=network_pb.ChildPrefixLength(ipv4=24)),
        dict(id="internet", type=kind.NETWORK_TYPE_EXTERNAL, prefixes=["192.0.2.0/24"],
             destination_prefixes=["0.0.0.0/0"], vrf=100),
        dict(id="underlay", type=kind.NETWORK_TYPE_UNDERLAY, prefixes=["10.1.0.0/24"]),
    ]
    for net in nets:
        call(admin_network.NetworkServiceClientSync, "create",
             admin_network_pb.NetworkServiceCreateRequest(partition="lab", **net))


def tenancy():
    """A project and its network."""
    call(admin_tenant.TenantServiceClientSync, "create",
         admin_tenant_pb.TenantServiceCreateRequest(name="acme", email="a@b.example"))
    made = call(project.ProjectServiceClientSync, "create",
                project_pb.ProjectServiceCreateRequest(
                    login="acme", name="web", description="web"))
    uuid = made.project.uuid
    made = call(network.NetworkServiceClientSync, "create",
                network_pb.NetworkServiceCreateRequest(
                    project=uuid, name="private", partition="lab"))
    return uuid, made.network.id


def hammer():
    """The secret of a machine that booted and registered."""
    wanted = token_pb.TokenServiceCreateRequest(
        description="agent", expires=duration_pb2.Duration(seconds=3600),
        infra_role=common_pb.InfraRole.INFRA_ROLE_EDITOR,
        labels=common_pb.Labels(labels={"metalmesh.dev/partition": "lab"}))
    boots = call(admin_token.TokenServiceClientSync, "create",
                 admin_token_pb.TokenServiceCreateRequest(
                     user="metal-stack", token_create_request=wanted)).secret
    call(infra_boot.BootServiceClientSync, "dhcp",
         infra_boot_pb.BootServiceDhcpRequest(uuid=NODE, partition="lab"), boots)
    secret = call(infra_boot.BootServiceClientSync, "machine_token",
                  infra_boot_pb.BootServiceMachineTokenRequest(
                      uuid=NODE, user="pixiecore",
                      expires=duration_pb2.Duration(seconds=3600)), boots).secret
    hardware = machine_pb.MachineHardware(
        memory=2 * GIB, disks=[machine_pb.MachineBlockDevice(name="/dev/sda", size=20 * GIB)],
        cpus=[machine_pb.MetalCPU(cores=2, threads=2)],
        nics=[machine_pb.MachineNic(
            mac=f"02:00:00:00:0{side}:01", name=f"eth{side}",
            neighbors=[machine_pb.MachineNic(name="Eth1/1", hostname=f"spare-{side}")])
            for side in range(2)])
    bmc = machine_pb.MachineBMC(address="10.9.0.1:623", mac="02:00:00:00:09:01",
                                user="metal", password="from-hammer")
    call(infra_boot.BootServiceClientSync, "register",
         infra_boot_pb.BootServiceRegisterRequest(
             uuid=NODE, partition="lab", hardware=hardware, bmc=bmc,
             bios=machine_pb.MachineBios(version="2.4")), secret)
    return secret


class Story:
    def __init__(self):
        catalogue()
        self.project, self.network = tenancy()
        self.secret = hammer()
        self.orders = []
        threading.Thread(target=self.wait, daemon=True).start()

    def wait(self):
        stream = call(infra_boot.BootServiceClientSync, "wait",
                      infra_boot_pb.BootServiceWaitRequest(uuid=NODE), self.secret)
        try:
            for order in stream:
                self.orders.append(order.allocation)
        except ConnectError:
            # Control is restarted in the middle.
            pass

    def allocate(self):
        kind = machine_pb.MachineAllocationType.MACHINE_ALLOCATION_TYPE_FIREWALL
        nets = [machine_pb.MachineAllocationNetwork(network=it)
                for it in ("internet", self.network)]
        wanted = machine_pb.MachineServiceCreateRequest(
            project=self.project, name="fw", hostname="fw", partition="lab", size="small",
            image="firewall-3.0", networks=nets, allocation_type=kind,
            filesystem_layout="default")
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                made = call(machine.MachineServiceClientSync, "create", wanted).machine
                return MessageToDict(made.allocation.vpn)
            except ConnectError as error:
                # It waits as soon as its stream is open.
                if error.code != Code.RESOURCE_EXHAUSTED or time.monotonic() > until:
                    raise

    def order(self):
        until = time.monotonic() + PATIENCE_S
        while not self.orders and time.monotonic() < until:
            threading.Event().wait(0.01)
        return MessageToDict(self.orders[-1].vpn)

    def show(self):
        got = call(machine.MachineServiceClientSync, "get",
                   machine_pb.MachineServiceGetRequest(uuid=NODE, project=self.project))
        return MessageToDict(got.machine.allocation.vpn)

    def release(self):
        call(machine.MachineServiceClientSync, "delete",
             machine_pb.MachineServiceDeleteRequest(uuid=NODE, project=self.project))
        return {}


def main():
    story = Story()
    print(json.dumps({"project": story.project}), flush=True)
    for line in sys.stdin:
        try:
            answer = getattr(story, line.strip())()
        except ConnectError as error:
            answer = {"code": error.code.value, "message": error.message}
        print(json.dumps(answer), flush=True)


main()
