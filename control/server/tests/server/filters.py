"""Predicates for the fields of the contract's queries: a plain filter over what Get answers.

A field finds the objects that have its value among those of PREDICATES or, without an entry there,
in the field of the same name. A list finds the objects that have all its values.
"""

import ipaddress

# Fields that no plain filter over an object decides, and why, or where they are tried.
EXCEPTIONS = {
    "MachineQuery.allocation.vpn": "needs a VPN; control/api/tests/api/lists.rs",
    "TenantQuery.paging": "a page is no filter; pages_are_the_whole",
    "TaskQuery.count": "a page is no filter; pages_are_the_whole",
    "TaskQuery.page": "a page is no filter; pages_are_the_whole",
    "AuditQuery.from": "a time is a bound; audit_bounds",
    "AuditQuery.to": "a time is a bound; audit_bounds",
    "AuditQuery.limit": "a bound; audit_bounds",
    "AuditQuery.body": "a part of a text; audit_bounds",
    "MachineIssuesQuery.only": "a choice of issues, not machines; issues_are_chosen",
    "MachineIssuesQuery.omit": "a choice of issues, not machines; issues_are_chosen",
    "MachineIssuesQuery.severity": "a choice of issues, not machines; issues_are_chosen",
    "MachineIssuesQuery.last_error_threshold": "an age of events; issues_are_chosen",
    "CapacityQuery.size": "a part of each answer; capacity_is_chosen",
    "CapacityQuery.project": "changes what counts as reserved; control/api/tests/api/machines.rs",
    "VPNQuery.project": "needs a VPN; vpn.rs",
}


def one(value):
    return [] if value in (None, "") else [value]


def each(items, name):
    return [item[name] for item in items if item.get(name) not in (None, "")]


def every(items, name):
    return [value for item in items for value in item.get(name, [])]


def labels_of(item):
    return item.get("meta", {}).get("labels", {}).get("labels", {})


def allocation(machine):
    return machine.get("allocation", {})


def attached(machine):
    return allocation(machine).get("networks", [])


def hardware(machine):
    return machine.get("hardware", {})


def nics(machine):
    return hardware(machine).get("nics", [])


def neighbours(machine):
    return [neighbour for nic in nics(machine) for neighbour in nic.get("neighbors", [])]


def families(prefixes):
    """The address families that a network counts as: one of both counts as each."""
    versions = {ipaddress.ip_network(prefix).version for prefix in prefixes}
    found = [f"NETWORK_ADDRESS_FAMILY_V{version}" for version in sorted(versions)]
    return found + ["NETWORK_ADDRESS_FAMILY_DUAL_STACK"] if len(versions) == 2 else found


class Filters:
    """Predicates over objects of one site; some look at more than the object itself."""

    def __init__(self, site, reports, prefixes, machine_ips):
        """BMC reports by machine, prefixes by network, and machines by network and address."""
        self.site, self.reports = site, reports
        self.prefixes, self.machine_ips = prefixes, machine_ips
        self.predicates = {**self.of_machines(), **self.of_networks(), **self.of_others()}

    def values(self, path, item):
        """The values with which a query's field finds an object."""
        predicate = self.predicates.get(path)
        return predicate(item) if predicate else one(item.get(path.rsplit(".", 1)[1]))

    def bmc(self, machine):
        return self.reports.get(machine["uuid"], {}).get("bmc", {})

    def fru(self, machine):
        return self.reports.get(machine["uuid"], {}).get("fru", {})

    def of_machines(self):
        found = {
            "name": lambda machine: one(allocation(machine).get("name")),
            "partition": lambda machine: one(machine.get("partition", {}).get("id")),
            "size": lambda machine: one(machine.get("size", {}).get("id")),
            "state": lambda machine: one(machine["status"]["condition"].get("state")),
            "waiting": lambda machine: [machine["uuid"] == self.site.idle],
            # Allocation is one step here: no machine is between free and allocated.
            "preallocated": lambda machine: [False],
            "not_allocated": lambda machine: ["allocation" not in machine],
            "allocation.image": lambda machine: one(allocation(machine).get("image", {}).get("id")),
            "allocation.filesystem_layout": lambda machine: one(
                allocation(machine).get("filesystem_layout", {}).get("id")),
            "allocation.labels": lambda machine: labels_of(allocation(machine)),
            "network.networks": lambda machine: each(attached(machine), "network"),
            "network.prefixes": lambda machine: every(attached(machine), "prefixes"),
            "network.destination_prefixes": lambda machine: every(
                attached(machine), "destination_prefixes"),
            "network.ips": lambda machine: every(attached(machine), "ips"),
            "network.vrfs": lambda machine: each(attached(machine), "vrf"),
            "network.asns": lambda machine: each(attached(machine), "asn"),
            "nic.macs": lambda machine: each(nics(machine), "mac"),
            "nic.names": lambda machine: each(nics(machine), "name"),
            "nic.neighbor_macs": lambda machine: each(neighbours(machine), "mac"),
            "nic.neighbor_names": lambda machine: each(neighbours(machine), "name"),
            "disk.names": lambda machine: each(hardware(machine).get("disks", []), "name"),
            "disk.sizes": lambda machine: each(hardware(machine).get("disks", []), "size"),
            "hardware.memory": lambda machine: one(hardware(machine).get("memory")),
            "hardware.cpu_cores": lambda machine: [sum(each(hardware(machine).get("cpus", []),
                                                            "cores"))],
            "bmc.address": lambda machine: one(
                self.bmc(machine).get("address", "").rsplit(":", 1)[0]),
            # Nobody is shown the user; every report of this site has the same.
            "bmc.user": lambda machine: ["metal"] if self.bmc(machine) else [],
            "fru.board_serial": lambda machine: one(self.fru(machine).get("board_mfg_serial")),
        }
        for name in ("uuid", "name", "project", "hostname", "allocation_type"):
            found[f"allocation.{name}"] = (
                lambda machine, name=name: one(allocation(machine).get(name)))
        for name in ("mac", "interface"):
            found[f"bmc.{name}"] = lambda machine, name=name: one(self.bmc(machine).get(name))
        for name in ("chassis_part_number", "chassis_part_serial", "board_mfg",
                     "board_part_number", "product_manufacturer", "product_part_number",
                     "product_serial"):
            found[f"fru.{name}"] = lambda machine, name=name: one(self.fru(machine).get(name))
        return {f"MachineQuery.{name}": predicate for name, predicate in found.items()}

    def of_networks(self):
        return {
            "NetworkQuery.prefixes": lambda network: network.get("prefixes", []),
            "NetworkQuery.destination_prefixes":
                lambda network: network.get("destination_prefixes", []),
            "NetworkQuery.address_family": lambda network: families(network.get("prefixes", [])),
            "IPQuery.machine": lambda ip: one(self.machine_ips.get((ip["network"], ip["ip"]))),
            "IPQuery.parent_prefix_cidr": self.parent_prefix,
            "IPQuery.address_family": lambda ip: [
                f"IP_ADDRESS_FAMILY_V{ipaddress.ip_address(ip['ip']).version}"],
        }

    def parent_prefix(self, ip):
        found = ipaddress.ip_address(ip["ip"])
        return [prefix for prefix in self.prefixes.get(ip["network"], [])
                if found in ipaddress.ip_network(prefix)]

    @staticmethod
    def of_others():
        return {
            "ImageQuery.os": lambda image: one(image["id"].rsplit("-", 1)[0]),
            "ImageQuery.version": lambda image: one(image["id"].rsplit("-", 1)[1]),
            "ImageQuery.feature": lambda image: image.get("features", []),
            "SizeReservationQuery.partition": lambda kept: kept.get("partitions", []),
            "SwitchQuery.os.vendor": lambda switch: one(switch["os"].get("vendor")),
            "SwitchQuery.os.version": lambda switch: one(switch["os"].get("version")),
            "SwitchQuery.connected_machine_id":
                lambda switch: each(switch.get("machine_connections", []), "machine_id"),
            "CapacityQuery.id": lambda capacity: one(capacity["partition"]),
        }
