"""What a value of the source becomes in the copy. Pure."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from airflow_cdc_provider.core.columns.values import value_text
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.schema import Kind

Convert = Callable[[Any], Any]
"""Of a value that is not NULL."""

MASK = "****"
SHA256 = "sha256"
RECENT_TEXTS = 4096
HASH_DIGITS = 64
MIN_KEY_CHARACTERS = 16


def hash_function(kind: Kind, key: bytes) -> Convert:
    """HMAC-SHA-256 of the value's text in UTF-8, in hex digits; of bytes, of the bytes themselves. Values that are
    equal have one hash, in whatever table: 7 as an integer, as a decimal and as a text."""
    text_of = value_text(kind)

    @lru_cache(RECENT_TEXTS)  # a key is hashed for each image and each key of a change
    def of_text(text: str) -> str:
        return hmac.digest(key, text.encode("utf-8", "surrogatepass"), SHA256).hex()

    if kind is Kind.BYTES:
        return lambda value: hmac.digest(key, value, SHA256).hex()
    return lambda value: of_text(text_of(value))


def mask_function(kind: Kind, characters: int) -> Convert:
    """The length of the value is not visible. At most half of a value remains."""
    text_of = value_text(kind)

    def mask(value: Any) -> str:
        text = text_of(value)
        return MASK + text[-characters:] if characters and len(text) >= 2 * characters else MASK

    return mask


def hash_key(definition: Definition, connection: ConnectionInfo) -> bytes:
    """The key of ``columns.hash``; empty if no column is hashed. Raises CheckFailed (CON004) if the ``connection`` has
    none, or a short one."""
    if not any(rule.columns.hash for rule in definition.tables):
        return b""
    if len(connection.password) >= MIN_KEY_CHARACTERS:
        return connection.password.encode()
    raise CheckFailed.of(
        "CON004",
        f"the password of connection {connection.connection_id} is not a key for hashes",
        where=f"connection {connection.connection_id}",
        found=f"{len(connection.password)} characters",
        allowed=f"at least {MIN_KEY_CHARACTERS} characters, chosen at random",
        do="set the password of the connection, for example to the output of `openssl rand -hex 32`",
    )


def hash_key_id(key: bytes) -> str:
    """Differs for other keys, and does not reveal the key."""
    return hmac.digest(key, b"id of this key", SHA256).hex()[:16] if key else ""
