# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Values of the API's enums, by the short names that users write and read."""
from __future__ import annotations

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import ValueProblem


def _plain(*names):
    return {name: name.upper().replace("-", "_") for name in names}


# By the prefix of an enum's values: what users write, and the rest of the value's name.
ENUMS = {
    "ADMIN_ROLE": _plain("editor", "viewer"),
    "COMPONENT_TYPE": _plain("pixiecore", "metal-core", "metal-bmc", "metal-image-cache-sync",
                             "metal-console", "metal-metrics-exporter", "external-application"),
    "FORMAT": _plain("vfat", "ext3", "ext4", "swap", "tmpfs", "none"),
    "GPT_TYPE": {"ef00": "BOOT", "8300": "LINUX", "fd00": "LINUX_RAID", "8e00": "LINUX_LVM"},
    "IMAGE_CLASSIFICATION": _plain("preview", "supported", "deprecated"),
    "IMAGE_FEATURE": _plain("machine", "firewall"),
    "INFRA_ROLE": _plain("editor", "viewer"),
    "IP_ADDRESS_FAMILY": {"ipv4": "V4", "ipv6": "V6"},
    "IP_PROTOCOL": _plain("tcp", "udp"),
    "IP_TYPE": _plain("ephemeral", "static"),
    "LVM_TYPE": _plain("linear", "striped", "raid1"),
    "MACHINE_ALLOCATION_TYPE": _plain("machine", "firewall"),
    "MACHINE_BMC_COMMAND": _plain("on", "off", "reset", "cycle", "boot-to-bios", "boot-from-disk",
                                  "boot-from-pxe", "identify-led-on", "identify-led-off"),
    "MACHINE_LIVELINESS": _plain("alive", "dead", "unknown"),
    "MACHINE_PROVISIONING_EVENT_STATE": _plain("crashloop", "failed-reclaim"),
    "MACHINE_PROVISIONING_EVENT_TYPE": {
        "Alive": "ALIVE", "Crashed": "CRASHED", "PXE Booting": "PXE_BOOTING",
        "Planned Reboot": "PLANNED_REBOOT", "Preparing": "PREPARING",
        "Registering": "REGISTERING", "Waiting": "WAITING", "Installing": "INSTALLING",
        "Booting New Kernel": "BOOTING_NEW_KERNEL", "Phoned Home": "PHONED_HOME",
        "Machine Reclaim": "MACHINE_RECLAIM",
    },
    "MACHINE_ROLE": _plain("editor", "viewer"),
    "MACHINE_STATE": _plain("tainted", "locked", "available"),
    "NAT_TYPE": {"none": "NONE", "ipv4-masq": "IPV4_MASQUERADE"},
    "NETWORK_ADDRESS_FAMILY": {"ipv4": "V4", "ipv6": "V6", "dual-stack": "DUAL_STACK"},
    "NETWORK_TYPE": _plain("external", "underlay", "super", "super-namespaced", "child",
                           "child-shared"),
    "NODE_ROLE": _plain("leader", "voter", "learner", "invited", "removed"),
    "AGENT_KIND": _plain("core", "bmc", "pixie"),
    "PROJECT_COMPONENT_KIND": _plain("gardener", "ccm", "machine-controller-manager",
                                     "firewall-controller-manager", "cluster-api", "reader"),
    "PROJECT_ROLE": _plain("owner", "editor", "viewer"),
    "RAID_LEVEL": {"0": "0", "1": "1"},
    "SERVICE_STATUS": _plain("degraded", "unhealthy", "healthy"),
    "SIZE_CONSTRAINT_TYPE": _plain("cores", "memory", "storage", "gpu"),
    "SWITCH_OS_VENDOR": {"Cumulus": "CUMULUS", "SONiC": "SONIC"},
    "SWITCH_PORT_STATUS": _plain("up", "down", "unknown"),
    "SWITCH_REPLACE_MODE": _plain("replace", "operational"),
    "TENANT_ROLE": _plain("owner", "editor", "viewer", "guest"),
    "TOKEN_TYPE": _plain("api", "user"),
    "BGP_STATE": {"Idle": "IDLE", "Connect": "CONNECT", "Active": "ACTIVE",
                  "OpenSent": "OPEN_SENT", "OpenConfirm": "OPEN_CONFIRM",
                  "Established": "ESTABLISHED"},
}

SHORT = {"%s_%s" % (prefix, rest): short
         for prefix, values in ENUMS.items() for short, rest in values.items()}


def full(prefix, short):
    """The value of the API for what a user wrote."""
    if short not in ENUMS[prefix]:
        raise ValueProblem("%s is none of %s" % (short, ", ".join(ENUMS[prefix])))
    return "%s_%s" % (prefix, ENUMS[prefix][short])


def short_of(value):
    """What a user reads for a value; other values stay as they are."""
    return SHORT.get(value, value)


def choices(prefix):
    """What a user may write."""
    return list(ENUMS[prefix])
