"""The modules of the published Python package."""

import importlib
import pkgutil

PACKAGES = ("metalstack.api.v2", "metalstack.admin.v2", "metalstack.infra.v2")


def modules():
    """Each generated module of the contract."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__):
            if module.name.endswith("_pb2"):
                yield importlib.import_module(f"{name}.{module.name}")


def messages():
    """Each message type of the contract, map entries left out."""
    for module in modules():
        for name in sorted(module.DESCRIPTOR.message_types_by_name):
            yield getattr(module, name)
