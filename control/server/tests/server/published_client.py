"""Drives the scenario's methods through the published client.

Each combination of protocol and codec works in a partition, tenant and project of its own.
Usage: ADMIN_TOKEN=... published_client.py http://127.0.0.1:PORT
"""

import os
import sys
import threading
import time
import uuid as uuids

import pyqwest
from connectrpc.code import Code
from connectrpc.codec import proto_binary_codec, proto_json_codec
from connectrpc.errors import ConnectError
from connectrpc.protocol import ProtocolType
from google.protobuf import duration_pb2

import image_server
import metalstack.admin.v2.image_connect as admin_image
import metalstack.admin.v2.image_pb2 as admin_image_pb
import metalstack.admin.v2.machine_connect as admin_machine
import metalstack.admin.v2.machine_pb2 as admin_machine_pb
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
import metalstack.api.v2.health_connect as health
import metalstack.api.v2.health_pb2 as health_pb
import metalstack.api.v2.image_connect as image
import metalstack.api.v2.image_pb2 as image_pb
import metalstack.api.v2.ip_connect as ip
import metalstack.api.v2.ip_pb2 as ip_pb
import metalstack.api.v2.machine_connect as machine
import metalstack.api.v2.machine_pb2 as machine_pb
import metalstack.api.v2.method_connect as method
import metalstack.api.v2.method_pb2 as method_pb
import metalstack.api.v2.network_connect as network
import metalstack.api.v2.network_pb2 as network_pb
import metalstack.api.v2.partition_connect as partition
import metalstack.api.v2.partition_pb2 as partition_pb
import metalstack.api.v2.project_connect as project
import metalstack.api.v2.project_pb2 as project_pb
import metalstack.api.v2.size_connect as size
import metalstack.api.v2.size_pb2 as size_pb
import metalstack.api.v2.tenant_connect as tenant
import metalstack.api.v2.tenant_pb2 as tenant_pb
import metalstack.api.v2.token_connect as token
import metalstack.api.v2.token_pb2 as token_pb
import metalstack.api.v2.user_connect as user
import metalstack.api.v2.user_pb2 as user_pb
import metalstack.api.v2.switch_pb2 as switch_pb
import metalstack.api.v2.version_connect as version
import metalstack.api.v2.version_pb2 as version_pb
import metalstack.infra.v2.bmc_connect as infra_bmc
import metalstack.infra.v2.bmc_pb2 as infra_bmc_pb
import metalstack.infra.v2.boot_connect as infra_boot
import metalstack.infra.v2.boot_pb2 as infra_boot_pb
import metalstack.infra.v2.event_connect as infra_event
import metalstack.infra.v2.event_pb2 as infra_event_pb
import metalstack.infra.v2.switch_connect as infra_switch
import metalstack.infra.v2.switch_pb2 as infra_switch_pb

URL = sys.argv[1]
ADMIN = os.environ["ADMIN_TOKEN"]
GIB = 1 << 30

transport = pyqwest.SyncHTTPTransport(http_version=pyqwest.HTTPVersion.HTTP2, timeout=30)
http = pyqwest.SyncClient(transport=transport)


class Caller:
    """Calls with one protocol, one codec and one token."""

    def __init__(self, protocol, codec, secret):
        self.options = {"protocol": protocol, "codec": codec, "http_client": http}
        self.secret = secret

    def call(self, client, name, request, headers=None):
        headers = dict(headers or {})
        if self.secret:
            headers["Authorization"] = f"Bearer {self.secret}"
        return getattr(client(URL, **self.options), name)(request, headers=headers)


def refused(code, act):
    try:
        act()
    except ConnectError as error:
        assert error.code == code, f"{error.code} {error.message}, {code} expected"
        return error
    raise AssertionError(f"not refused, {code} expected")


def catalogue(admin, name, number):
    """Partition, size, image, super network."""
    part = partition_pb.Partition(id=name, description="made by Python")
    made = admin.call(admin_partition.PartitionServiceClientSync, "create",
                      admin_partition_pb.PartitionServiceCreateRequest(partition=part))
    assert made.partition.meta.generation == 1 and made.partition.meta.HasField("created_at")
    refused(Code.ALREADY_EXISTS,
            lambda: admin.call(admin_partition.PartitionServiceClientSync, "create",
                               admin_partition_pb.PartitionServiceCreateRequest(partition=part)))
    kind = size_pb.SizeConstraintType
    limits = [(kind.SIZE_CONSTRAINT_TYPE_CORES, number, number),
              (kind.SIZE_CONSTRAINT_TYPE_MEMORY, GIB, 4 * GIB),
              (kind.SIZE_CONSTRAINT_TYPE_STORAGE, GIB, 100 * GIB)]
    made = admin.call(
        admin_size.SizeServiceClientSync, "create",
        admin_size_pb.SizeServiceCreateRequest(size=size_pb.Size(
            id=name, constraints=[size_pb.SizeConstraint(type=t, min=a, max=b)
                                  for t, a, b in limits])))
    assert made.size.constraints[1].max == 4 * GIB
    # Without a label for its digest, of which this client knows nothing.
    url = image_server.url(f"published-{name}.tar.zst")
    made = admin.call(
        admin_image.ImageServiceClientSync, "create",
        admin_image_pb.ImageServiceCreateRequest(image=image_pb.Image(
            id=f"{name}-12.0.{number}", url=url,
            features=[image_pb.ImageFeature.IMAGE_FEATURE_MACHINE],
            classification=image_pb.ImageClassification.IMAGE_CLASSIFICATION_SUPPORTED)))
    assert made.image.HasField("expires_at")
    assert dict(made.image.meta.labels.labels) == image_server.labels(url), made
    made = admin.call(
        admin_network.NetworkServiceClientSync, "create",
        admin_network_pb.NetworkServiceCreateRequest(
            id=f"super-{name}", partition=name, type=network_pb.NetworkType.NETWORK_TYPE_SUPER,
            prefixes=[f"10.{number}.0.0/16"],
            default_child_prefix_length=network_pb.ChildPrefixLength(ipv4=24)))
    assert made.network.nat_type == network_pb.NATType.NAT_TYPE_NONE
    assert made.network.consumption.ipv4.available_prefixes == 256
    machines = admin.call(admin_machine.MachineServiceClientSync, "list",
                          admin_machine_pb.MachineServiceListRequest(
                              query=machine_pb.MachineQuery(partition=name)))
    assert len(machines.machines) == 0


def tenancy(admin, name):
    """Tenant, project, and a token of its owner."""
    admin.call(admin_tenant.TenantServiceClientSync, "create",
               admin_tenant_pb.TenantServiceCreateRequest(name=name, email="a@b.example"))
    made = admin.call(project.ProjectServiceClientSync, "create",
                      project_pb.ProjectServiceCreateRequest(
                          login=name, name=f"{name}-project", description="Python's"))
    uuid = made.project.uuid
    assert made.project.meta.HasField("created_at")
    own = ["/metalstack.api.v2.UserService/Get", "/metalstack.api.v2.ImageService/List",
           "/metalstack.api.v2.TokenService/List", "/metalstack.api.v2.TokenService/Revoke",
           "/metalstack.api.v2.ImageService/Latest", "/metalstack.api.v2.SizeService/List",
           "/metalstack.api.v2.PartitionService/List",
           "/metalstack.api.v2.MethodService/TokenScopedList"]
    wanted = token_pb.TokenServiceCreateRequest(
        description="tenant", expires=duration_pb2.Duration(seconds=3600),
        project_roles={uuid: common_pb.ProjectRole.PROJECT_ROLE_OWNER},
        tenant_roles={name: common_pb.TenantRole.TENANT_ROLE_OWNER})
    wanted.permissions.add().self.methods.extend(own)
    made = admin.call(admin_token.TokenServiceClientSync, "create",
                      admin_token_pb.TokenServiceCreateRequest(
                          user=name, token_create_request=wanted))
    assert made.secret.count(".") == 2 and made.token.HasField("expires")
    return uuid, made.token.uuid, made.secret


def reads(who, name, number):
    """What every log-in may look at."""
    images = who.call(image.ImageServiceClientSync, "list", image_pb.ImageServiceListRequest())
    assert f"{name}-12.0.{number}" in [one.id for one in images.images]
    latest = who.call(image.ImageServiceClientSync, "latest",
                      image_pb.ImageServiceLatestRequest(os=name))
    assert latest.image.id == f"{name}-12.0.{number}"
    sizes = who.call(size.SizeServiceClientSync, "list", size_pb.SizeServiceListRequest())
    assert name in [one.id for one in sizes.sizes]
    parts = who.call(partition.PartitionServiceClientSync, "list",
                     partition_pb.PartitionServiceListRequest())
    assert name in [one.id for one in parts.partitions]
    me = who.call(user.UserServiceClientSync, "get", user_pb.UserServiceGetRequest()).user
    assert me.login == name and me.default_tenant.login == name
    scoped = who.call(method.MethodServiceClientSync, "token_scoped_list",
                      method_pb.MethodServiceTokenScopedListRequest())
    assert len(scoped.project_roles) == 1
    got = who.call(tenant.TenantServiceClientSync, "get",
                   tenant_pb.TenantServiceGetRequest(login=name))
    assert [one.id for one in got.tenant_members] == [name]


def networks(who, uuid, name, number):
    """A network, an address, and their end."""
    made = who.call(network.NetworkServiceClientSync, "create",
                    network_pb.NetworkServiceCreateRequest(
                        project=uuid, name="test", partition=name,
                        length=network_pb.ChildPrefixLength()))
    net = made.network.id
    assert list(made.network.prefixes) == [f"10.{number}.0.0/24"]
    base = who.call(network.NetworkServiceClientSync, "list_base_networks",
                    network_pb.NetworkServiceListBaseNetworksRequest(project=uuid))
    assert f"super-{name}" in [one.id for one in base.networks]
    taken = who.call(ip.IPServiceClientSync, "create",
                     ip_pb.IPServiceCreateRequest(project=uuid, network=net, name="web"))
    assert taken.ip.ip == f"10.{number}.0.1"
    update = ip_pb.IPServiceUpdateRequest(
        ip=taken.ip.ip, project=uuid, description="static now",
        type=ip_pb.IPType.IP_TYPE_STATIC,
        update_meta=common_pb.UpdateMeta(updated_at=taken.ip.meta.updated_at))
    changed = who.call(ip.IPServiceClientSync, "update", update)
    assert changed.ip.meta.generation == 2
    refused(Code.ABORTED, lambda: who.call(ip.IPServiceClientSync, "update", update))
    refused(Code.FAILED_PRECONDITION,
            lambda: who.call(network.NetworkServiceClientSync, "delete",
                             network_pb.NetworkServiceDeleteRequest(project=uuid, id=net)))
    listed = who.call(ip.IPServiceClientSync, "list", ip_pb.IPServiceListRequest(project=uuid))
    assert len(listed.ips) == 1
    who.call(ip.IPServiceClientSync, "delete",
             ip_pb.IPServiceDeleteRequest(project=uuid, ip=taken.ip.ip))
    return net


def machines(who, uuid, name, number, net):
    """Without a machine that waits none is allocated, and the reason is told."""
    wanted = machine_pb.MachineServiceCreateRequest(
        project=uuid, name="m1", partition=name, size=name, image=f"{name}-12",
        filesystem_layout="default",
        networks=[machine_pb.MachineAllocationNetwork(network=net)], userdata="",
        allocation_type=machine_pb.MachineAllocationType.MACHINE_ALLOCATION_TYPE_MACHINE)
    error = refused(Code.RESOURCE_EXHAUSTED,
                    lambda: who.call(machine.MachineServiceClientSync, "create", wanted,
                                     {"idempotency-key": f"{name}-1"}))
    assert error.message.startswith("MM-1203"), error.message
    listed = who.call(machine.MachineServiceClientSync, "list",
                      machine_pb.MachineServiceListRequest(
                          project=uuid, query=machine_pb.MachineQuery()))
    assert len(listed.machines) == 0


def agent(admin, name):
    """The secret of an agent's token, bound to a partition."""
    wanted = token_pb.TokenServiceCreateRequest(
        description="agent", expires=duration_pb2.Duration(seconds=3600),
        infra_role=common_pb.InfraRole.INFRA_ROLE_EDITOR,
        labels=common_pb.Labels(labels={"metalmesh.dev/partition": name}))
    made = admin.call(admin_token.TokenServiceClientSync, "create",
                      admin_token_pb.TokenServiceCreateRequest(
                          user="metal-stack", token_create_request=wanted))
    return made.secret


def hammer(boots, protocol, codec, name, number, node):
    """A machine that booted and registered: how its hammer calls."""
    boots.call(infra_boot.BootServiceClientSync, "dhcp",
               infra_boot_pb.BootServiceDhcpRequest(uuid=node, partition=name))
    made = boots.call(infra_boot.BootServiceClientSync, "machine_token",
                      infra_boot_pb.BootServiceMachineTokenRequest(
                          uuid=node, user="pixiecore",
                          expires=duration_pb2.Duration(seconds=3600)))
    who = Caller(protocol, codec, made.secret)
    hardware = machine_pb.MachineHardware(
        memory=2 * GIB, disks=[machine_pb.MachineBlockDevice(name="/dev/sda", size=20 * GIB)],
        cpus=[machine_pb.MetalCPU(cores=number, threads=number)],
        nics=[machine_pb.MachineNic(
            mac=f"02:00:00:00:0{side}:0{number}", name=f"eth{side}",
            neighbors=[machine_pb.MachineNic(name="Eth1/1", hostname=f"spare-{side}")])
            for side in range(2)])
    bmc = machine_pb.MachineBMC(address=f"10.9.0.{number}:623", mac=f"02:00:00:00:09:0{number}",
                                user="metal", password="from-hammer")
    answer = who.call(infra_boot.BootServiceClientSync, "register",
                      infra_boot_pb.BootServiceRegisterRequest(
                          uuid=node, partition=name, hardware=hardware, bmc=bmc,
                          bios=machine_pb.MachineBios(version="2.4")))
    assert (answer.size, answer.partition) == (name, name), answer
    return who


def allocated(who, uuid, name, net):
    """A machine, as soon as one waits."""
    wanted = machine_pb.MachineServiceCreateRequest(
        project=uuid, name="m2", partition=name, size=name, image=f"{name}-12",
        filesystem_layout="default",
        networks=[machine_pb.MachineAllocationNetwork(network=net)],
        allocation_type=machine_pb.MachineAllocationType.MACHINE_ALLOCATION_TYPE_MACHINE)
    until = time.monotonic() + 20
    while True:
        try:
            return who.call(machine.MachineServiceClientSync, "create", wanted).machine
        except ConnectError as error:
            if error.code != Code.RESOURCE_EXHAUSTED or time.monotonic() > until:
                raise


def agents(protocol, codec, admin, who, uuid, name, number):
    """The published stack's agents bring a machine from its first packet to a tenant."""
    boots = Caller(protocol, codec, agent(admin, name))
    node = str(uuids.uuid4())
    machine_itself = hammer(boots, protocol, codec, name, number, node)
    orders = []

    def wait():
        stream = machine_itself.call(infra_boot.BootServiceClientSync, "wait",
                                     infra_boot_pb.BootServiceWaitRequest(uuid=node))
        orders.append(next(iter(stream)))

    waiting = threading.Thread(target=wait)
    waiting.start()
    net = who.call(network.NetworkServiceClientSync, "create",
                   network_pb.NetworkServiceCreateRequest(
                       project=uuid, name="agents", partition=name)).network.id
    made = allocated(who, uuid, name, net)
    assert made.uuid == node
    image_of = made.allocation.image
    assert dict(image_of.meta.labels.labels) == image_server.labels(image_of.url), made
    waiting.join(20)
    assert orders[0].allocation.project == uuid
    machine_itself.call(infra_boot.BootServiceClientSync, "installation_succeeded",
                        infra_boot_pb.BootServiceInstallationSucceededRequest(
                            uuid=node, console_password="console"))
    commands = boots.call(infra_bmc.BMCServiceClientSync, "wait_for_b_m_c_command",
                          infra_bmc_pb.WaitForBMCCommandRequest(partition=name))
    command = next(iter(commands))
    kind = machine_pb.MachineBMCCommand
    assert command.uuid == node and command.bmc_command == kind.MACHINE_BMC_COMMAND_BOOT_FROM_DISK
    assert command.machine_bmc.password == "from-hammer"
    boots.call(infra_bmc.BMCServiceClientSync, "b_m_c_command_done",
               infra_bmc_pb.BMCCommandDoneRequest(command_id=command.command_id))
    home = machine_pb.MachineProvisioningEventType.MACHINE_PROVISIONING_EVENT_TYPE_PHONED_HOME
    sent = boots.call(infra_event.EventServiceClientSync, "send",
                      infra_event_pb.EventServiceSendRequest(
                          events={node: machine_pb.MachineProvisioningEvent(event=home)}))
    assert sent.events == 1 and not sent.failed
    leaf = switch_pb.Switch(
        id=f"leaf-{name}", partition=name, rack="rack-1", management_ip="10.9.1.1",
        replace_mode=switch_pb.SwitchReplaceMode.SWITCH_REPLACE_MODE_OPERATIONAL,
        nics=[switch_pb.SwitchNic(name="Ethernet0", identifier="Eth1/1")],
        os=switch_pb.SwitchOS(vendor=switch_pb.SwitchOSVendor.SWITCH_OS_VENDOR_SONIC,
                              version="202311", metal_core_version="v0.18"))
    made = boots.call(infra_switch.SwitchServiceClientSync, "register",
                      infra_switch_pb.SwitchServiceRegisterRequest(switch=leaf))
    assert made.switch.nics[0].identifier == "Eth1/1"
    answer = boots.call(infra_switch.SwitchServiceClientSync, "heartbeat",
                        infra_switch_pb.SwitchServiceHeartbeatRequest(id=leaf.id))
    assert answer.HasField("last_sync")
    refused(Code.PERMISSION_DENIED,
            lambda: boots.call(infra_boot.BootServiceClientSync, "dhcp",
                               infra_boot_pb.BootServiceDhcpRequest(
                                   uuid=node, partition="elsewhere")))


def strangers(protocol, codec, admin, who, uuid, token_id, net):
    """Nobody, somebody else, and somebody whose token was revoked."""
    listing = network_pb.NetworkServiceListRequest(project=uuid)
    client = network.NetworkServiceClientSync
    nobody = Caller(protocol, codec, None)
    nobody.call(version.VersionServiceClientSync, "get", version_pb.VersionServiceGetRequest())
    healthy = nobody.call(health.HealthServiceClientSync, "get",
                          health_pb.HealthServiceGetRequest())
    assert all(one.status == health_pb.ServiceStatus.SERVICE_STATUS_HEALTHY
               for one in healthy.health.services)
    refused(Code.PERMISSION_DENIED, lambda: nobody.call(client, "list", listing))
    wrong = Caller(protocol, codec, who.secret[:-4] + "AAAA")
    refused(Code.UNAUTHENTICATED, lambda: wrong.call(client, "list", listing))
    _, _, secret = tenancy(admin, f"rival-{time.time_ns()}")
    rival = Caller(protocol, codec, secret)
    refused(Code.NOT_FOUND, lambda: rival.call(client, "list", listing))
    refused(Code.NOT_FOUND,
            lambda: rival.call(client, "get", network_pb.NetworkServiceGetRequest(
                id=net, project=uuid)))
    refused(Code.PERMISSION_DENIED,
            lambda: who.call(admin_machine.MachineServiceClientSync, "list",
                             admin_machine_pb.MachineServiceListRequest()))
    refused(Code.INVALID_ARGUMENT,
            lambda: admin.call(partition.PartitionServiceClientSync, "get",
                               partition_pb.PartitionServiceGetRequest(id="x")))
    who.call(network.NetworkServiceClientSync, "delete",
             network_pb.NetworkServiceDeleteRequest(project=uuid, id=net))
    who.call(token.TokenServiceClientSync, "revoke",
             token_pb.TokenServiceRevokeRequest(uuid=token_id))
    refused(Code.UNAUTHENTICATED, lambda: who.call(client, "list", listing))


def main():
    combinations = [(protocol, codec, text)
                    for protocol in (ProtocolType.CONNECT, ProtocolType.GRPC,
                                     ProtocolType.GRPC_WEB)
                    for codec, text in ((proto_binary_codec(), "proto"),
                                        (proto_json_codec(), "json"))]
    for number, (protocol, codec, text) in enumerate(combinations, start=1):
        began = time.monotonic()
        name = f"{protocol.name.lower().replace('_', '')}{text}"
        admin = Caller(protocol, codec, ADMIN)
        catalogue(admin, name, number)
        uuid, token_id, secret = tenancy(admin, name)
        who = Caller(protocol, codec, secret)
        reads(who, name, number)
        net = networks(who, uuid, name, number)
        machines(who, uuid, name, number, net)
        agents(protocol, codec, admin, who, uuid, name, number)
        strangers(protocol, codec, admin, who, uuid, token_id, net)
        print(f"ok {protocol.name} {text} {time.monotonic() - began:.2f}s", flush=True)
    print(f"{len(combinations)} combinations served")


main()
