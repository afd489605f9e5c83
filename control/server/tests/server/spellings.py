"""Spellings of an id or address that the contract's rules accept, and those they refuse."""

import ipaddress
import re

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def address(value):
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        return None


def prefix(value):
    try:
        return ipaddress.ip_network(value) if "/" in value else None
    except ValueError:
        return None


def mixed(value):
    """Every other digit in upper case."""
    return "".join(digit.upper() if at % 2 else digit for at, digit in enumerate(value))


def accepted(value):
    """Other spellings of an id or address that the contract's rules accept."""
    if UUID.fullmatch(value) or MAC.fullmatch(value):
        return [value.upper(), mixed(value)]
    ip, net = address(value), prefix(value)
    if ip and ip.version == 6:
        return [ip.exploded, ip.compressed.upper()]
    if net and net.version == 6:
        return [f"{net.network_address.exploded}/{net.prefixlen}", net.compressed.upper()]
    return []


def refused(value):
    """Spellings that other software accepts, and the contract's rules do not."""
    if UUID.fullmatch(value):
        return [value.replace("-", ""), f"{{{value}}}", f"urn:uuid:{value}"]
    if MAC.fullmatch(value):
        return [value.replace(":", "-"), value.replace(":", "")]
    return []
