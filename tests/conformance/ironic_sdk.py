"""openstacksdk 4.22.0, unchanged: the bare metal and the network proxies over one project.
Usage: METALMESH_API=... IRONIC_URL=... ADMIN_TOKEN=... ironic_sdk.py
"""

import openstack
from openstack import exceptions

from ironic_calls import IRONIC
from ironic_world import World

STEP = {"interface": "bios", "step": "apply", "args": {}}


def connect(name, secret, **scope):
    auth = {"auth_url": f"{IRONIC}/v3", "username": name, "password": secret,
            "user_domain_id": "default", **scope}
    return openstack.connect(load_yaml_config=False, load_envvars=False, auth_type="password",
                             auth=auth, region_name="RegionOne")


def refused(kind, act):
    try:
        act()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} expected")


def site(cloud):
    """Drivers, conductors, chassis, templates, runbooks, by an administrator."""
    bare = cloud.baremetal
    assert "metalmesh" in [driver.name for driver in bare.drivers()]
    assert bare.get_driver("metalmesh").default_deploy_interface == "metalmesh"
    assert all(one.alive for one in bare.conductors())
    chassis = bare.create_chassis(description="hall")
    assert bare.update_chassis(chassis, description="hall 2").description == "hall 2"
    assert [one.id for one in bare.chassis()] == [chassis.id]
    bare.delete_chassis(chassis)
    refused(exceptions.NotFoundException, lambda: bare.get_chassis(chassis.id))
    template = bare.create_deploy_template(name="CUSTOM_T", steps=[{**STEP, "priority": 1}])
    assert bare.get_deploy_template("CUSTOM_T").id == template.id
    bare.delete_deploy_template(template)
    book = bare.create_runbook(name="book", steps=[{**STEP, "order": 1}])
    assert [one.name for one in bare.runbooks()] == ["book"]
    bare.delete_runbook(book)
    return 4


def nodes(cloud, machine):
    bare = cloud.baremetal
    node = bare.create_node(driver="metalmesh", name="kn1", extra={"a": 1})
    assert node.provision_state == "enroll", node
    node = bare.update_node(node, extra={"b": 2}, description="text")
    assert bare.get_node("kn1").extra == {"b": 2}
    bare.set_node_traits(node, ["CUSTOM_A"])
    bare.add_node_trait(node, "CUSTOM_B")
    bare.remove_node_trait(node, "CUSTOM_A")
    assert bare.get_node("kn1").traits == ["CUSTOM_B"]
    bare.set_node_maintenance(node, "test")
    bare.unset_node_maintenance(node)
    assert "kn1" in [one.name for one in bare.nodes(details=True)]
    bare.delete_node(node)
    refused(exceptions.NotFoundException, lambda: bare.get_node("kn1"))
    ports = list(bare.ports(details=True, node_id=machine.id))
    assert [port.address for port in ports] == machine.macs, ports
    bare.validate_node(machine.id, required=None)
    bare.set_node_boot_device(machine.id, "pxe")
    assert bare.get_node_boot_device(machine.id)["boot_device"] == "pxe"
    bare.set_node_power_state(machine.id, "power on")
    return 13


def network(world, cloud, machine):
    """The calls of Neutron, as a member of a project."""
    project, net = world.projects["alpha"], cloud.network
    own = net.find_network("alpha-net", ignore_missing=False)
    assert own.id == project.network and own.mtu, own
    assert own.id in [one.id for one in net.networks()]
    refused(exceptions.NotFoundException,
            lambda: net.find_network("beta-net", ignore_missing=False))
    refused(exceptions.NotFoundException,
            lambda: net.get_network(world.projects["beta"].network))
    subnet = net.get_subnet(own.subnet_ids[0])
    assert subnet.network_id == own.id and subnet.ip_version == 4, subnet
    assert [one.id for one in net.subnets(network_id=own.id)] == [subnet.id]
    port = net.create_port(network_id=own.id, name="p1", binding_host_id=machine.id)
    assert net.find_port("p1", ignore_missing=False).id == port.id
    net.update_port(port, name="p2")
    assert [one.name for one in net.ports(**{"binding:host_id": machine.id})] == ["p2"]
    cloud.baremetal.attach_vif_to_node(machine.id, port.id)
    (card,) = cloud.baremetal.ports(details=True, node_id=machine.id)
    assert card.internal_info["tenant_vif_port_id"] == port.id, card
    assert net.get_port(port.id).mac_address == card.address
    cloud.baremetal.detach_vif_from_node(machine.id, port.id)
    refused(exceptions.BadRequestException,
            lambda: net.create_port(network_id="tenants", name="in a super network"))
    refused(exceptions.BadRequestException, lambda: net.create_port(
        network_id=own.id, fixed_ips=[{"ip_address": "10.1.0.99"}]))
    own_ip = project.owner("api.IPService/Create", project=project.id, network=own.id,
                           name="web", type="IP_TYPE_STATIC")["ip"]["ip"]
    fixed = net.create_port(network_id=own.id, fixed_ips=[{"ip_address": own_ip}])
    assert fixed.fixed_ips == [{"subnet_id": subnet.id, "ip_address": own_ip}], fixed
    other = connect("beta", world.projects["beta"].tokens["admin"],
                    project_id=world.projects["beta"].id)
    assert list(other.network.ports()) == []
    refused(exceptions.NotFoundException, lambda: other.network.get_port(port.id))
    reader = connect("alpha", project.tokens["reader"], project_id=project.id)
    assert len(list(reader.network.ports())) == 2
    refused(exceptions.ForbiddenException,
            lambda: reader.network.delete_port(port.id, ignore_missing=False))
    for one in (port, fixed):
        net.delete_port(one, ignore_missing=False)
    assert list(net.ports()) == []
    return 20


def main():
    world = World("alpha", "beta")
    machine = world.machine("m1", 1)
    alpha = world.projects["alpha"]
    world.site.ok("PATCH", f"/v1/nodes/{machine.id}",
                  [{"op": "replace", "path": "/owner", "value": alpha.id}])
    who = world.site.ok("GET", f"/v1/nodes/{machine.id}")
    assert who["owner"] == alpha.id
    admin = openstack.connect(
        load_yaml_config=False, load_envvars=False, auth_type="admin_token",
        auth={"endpoint": IRONIC, "token": world.tokens["admin"]},
        baremetal_endpoint_override=IRONIC, network_endpoint_override=f"{IRONIC}/v2.0")
    done = site(admin) + nodes(admin, machine)
    member = connect("alpha", alpha.tokens["manager"], project_id=alpha.id)
    done += network(world, member, machine)
    print(f"{done} steps")


main()
