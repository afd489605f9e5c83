"""Writes the descriptors of the installed metal-stack-api package as one FileDescriptorSet.

Usage: descriptors.py OUT
"""

import sys

import published
from google.protobuf import descriptor_pb2


def main(out: str) -> None:
    """Every file of the contract after the files that it imports."""
    files = descriptor_pb2.FileDescriptorSet()
    seen: set[str] = set()

    def add(descriptor) -> None:
        if descriptor.name in seen:
            return
        seen.add(descriptor.name)
        for dependency in descriptor.dependencies:
            add(dependency)
        descriptor.CopyToProto(files.file.add())

    for module in published.modules():
        add(module.DESCRIPTOR)
    with open(out, "wb") as file:
        file.write(files.SerializeToString())


if __name__ == "__main__":
    main(sys.argv[1])
