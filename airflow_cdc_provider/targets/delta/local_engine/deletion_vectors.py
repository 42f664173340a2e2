"""Deletion vectors, the positions of deleted rows in a file, as in the Delta protocol.

A file of vectors: a version byte; then for each its size (4 bytes, big-endian), its bytes, their CRC-32 (4 bytes,
big-endian). The bytes: a magic number (4 bytes, little-endian) and a 64-bit Roaring bitmap in its portable form.
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from airflow_cdc_provider.staging.store import Store

Positions = npt.NDArray[np.int64]
"""Row positions in a file, from 0, ascending."""

FORMAT = b"\x01"
MAGIC = struct.pack("<I", 1681511377)
IN_FILE, INLINE = "u", "i"
ASCII85, Z85 = (
    "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstu",
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
)
TO_Z85, FROM_Z85 = str.maketrans(ASCII85, Z85), str.maketrans(Z85, ASCII85)


class UnreadableVector(Exception):
    """The vector is damaged, or has an unsupported format."""


def vector_exists(store: Store, table: str, descriptor: Mapping[str, Any]) -> bool:
    """Whether ``read_vector`` can find it."""
    kind, where = descriptor["storageType"], descriptor["pathOrInlineDv"]
    return kind == INLINE or (kind == IN_FILE and store.exists(f"{table}/{_path(where)}"))


def read_vector(store: Store, table: str, descriptor: Mapping[str, Any]) -> Positions:
    """Reads a vector that is inline or in the table's folder. Raises UnreadableVector."""
    if descriptor["storageType"] == INLINE:
        return decode(_from_z85(descriptor["pathOrInlineDv"])[: descriptor["sizeInBytes"]])
    content = store.read(f"{table}/{_path(descriptor['pathOrInlineDv'])}")
    start, size = int(descriptor["offset"]), int(descriptor["sizeInBytes"])
    stored_size, body = content[start : start + 4], content[start + 4 : start + 4 + size]
    checksum = content[start + 4 + size : start + 8 + size]
    if stored_size != struct.pack(">I", size) or checksum != struct.pack(">I", zlib.crc32(body)):
        raise UnreadableVector(f"the deletion vector at {start} of {descriptor['pathOrInlineDv']} is damaged")
    return decode(body)


def write_vectors(store: Store, table: str, vectors: Sequence[Positions]) -> list[dict[str, Any]]:
    """Writes all vectors into one new file and returns their descriptors."""
    name, content, descriptors = uuid.uuid4(), bytearray(FORMAT), list[dict[str, Any]]()
    for positions in vectors:
        body = encode(positions)
        descriptors.append(
            {
                "storageType": IN_FILE,
                "pathOrInlineDv": _to_z85(name.bytes),
                "offset": len(content),
                "sizeInBytes": len(body),
                "cardinality": len(positions),
            }
        )
        content += struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    store.write(f"{table}/{_path(_to_z85(name.bytes))}", bytes(content))
    return descriptors


def encode(positions: Iterable[int]) -> bytes:
    bitmap = BitMap64(positions)
    bitmap.run_optimize()
    return MAGIC + bitmap.serialize()


def decode(body: bytes) -> Positions:
    if not body.startswith(MAGIC):
        raise UnreadableVector(f"unknown format of a deletion vector: it begins with {body[:4].hex()}")
    return np.array(BitMap64.deserialize(body[len(MAGIC) :]).to_array(), np.int64)


def _path(encoded_name: str) -> str:
    """The last 20 characters are a UUID, those before them are a folder."""
    folder, name = encoded_name[:-20], uuid.UUID(bytes=_from_z85(encoded_name[-20:]))
    return f"{folder}/deletion_vector_{name}.bin" if folder else f"deletion_vector_{name}.bin"


def _to_z85(content: bytes) -> str:
    """ASCII85 with another alphabet and without the short form of four zero bytes."""
    return base64.a85encode(content).decode().replace("z", "!!!!!").translate(TO_Z85)


def _from_z85(text: str) -> bytes:
    return base64.a85decode(text.translate(FROM_Z85))
