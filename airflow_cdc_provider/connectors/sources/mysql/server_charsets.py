"""Whether the server converts text as the tables of this provider do.

The tables are made from MariaDB. Another server, or another version, may have other characters for some codes: then a
text of the binlog would not be the text that the server shows.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any
from zlib import crc32

from airflow_cdc_provider.connectors.sources.mysql.catalog import fetch_all
from airflow_cdc_provider.connectors.sources.mysql.charsets import BY_RULE, every_text, has_conversion

INVALID = 1300
"""The server has no such code in the character set."""


def convertible(connection: Any, charsets: Collection[str]) -> frozenset[str]:
    """Those of ``charsets`` that have a conversion, and that the server converts alike, code by code."""
    known = {charset for charset in charsets if has_conversion(charset)}
    return frozenset(charset for charset in known if charset in BY_RULE or converts_alike(connection, charset))


def converts_alike(connection: Any, charset: str) -> bool:
    return all(_checksum(connection, query) == expected for query, expected in _questions(charset))


@cache
def _questions(charset: str) -> tuple[tuple[str, int], ...]:
    """Queries, and what the server answers to each if it converts all codes alike."""
    return tuple(
        (f"SELECT CRC32(CONVERT(_{charset} X'{data.hex()}' USING utf8mb4))", crc32(text.encode()))
        for data, text in every_text(charset)
    )


def _checksum(connection: Any, query: str) -> int | None:
    import pymysql

    try:
        ((checksum,),) = fetch_all(connection, query)
    except pymysql.MySQLError as error:
        if error.args[0] != INVALID:
            raise
        return None
    return int(checksum)
