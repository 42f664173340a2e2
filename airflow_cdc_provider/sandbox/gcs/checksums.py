"""CRC32C, the checksum that Cloud Storage gives for uploads and that clients compare. Slow: about 5 MB/s."""

from __future__ import annotations

from base64 import b64encode

POLYNOMIAL = 0x82F63B78


def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


TABLE = _table()


def crc32c(content: bytes) -> str:
    """In base64, the most significant byte first."""
    table, value = TABLE, 0xFFFFFFFF
    for byte in content:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return b64encode((value ^ 0xFFFFFFFF).to_bytes(4, "big")).decode()
