"""The published contract as the published client has it: its methods, and the ways to call them."""

import importlib
import keyword
import pkgutil
import re

import pyqwest
from connectrpc.codec import proto_binary_codec, proto_json_codec
from connectrpc.protocol import ProtocolType

import metalstack.admin.v2
import metalstack.api.v2
import metalstack.infra.v2

PACKAGES = [metalstack.admin.v2, metalstack.api.v2, metalstack.infra.v2]

transport = pyqwest.SyncHTTPTransport(http_version=pyqwest.HTTPVersion.HTTP2, timeout=30)
http = pyqwest.SyncClient(transport=transport)
COMBINATIONS = [
    (f"{protocol.name} {name}", {"protocol": protocol, "codec": codec(), "http_client": http})
    for protocol in (ProtocolType.CONNECT, ProtocolType.GRPC, ProtocolType.GRPC_WEB)
    for name, codec in (("proto", proto_binary_codec), ("json", proto_json_codec))
]


def snake(name):
    """As the published generator calls a method: BMCCommand is b_m_c_command."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    return f"{name}_" if keyword.iskeyword(name) else name


def methods():
    """Client class, its method's name, and the method's descriptor."""
    for package in PACKAGES:
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.endswith("_connect"):
                continue
            name = f"{package.__name__}.{module.name}"
            clients = importlib.import_module(name)
            messages = importlib.import_module(name.removesuffix("connect") + "pb2")
            for service in messages.DESCRIPTOR.services_by_name.values():
                client = getattr(clients, f"{service.name}ClientSync")
                for method in service.methods:
                    yield client, snake(method.name), method
