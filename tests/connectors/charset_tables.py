"""Writes ``charset_tables.py`` of the MySQL source from a MariaDB: ``python -m tests.connectors.charset_tables``.

For every code of every character set, it compares the server's conversion with a codec of Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from textwrap import wrap
from typing import Any
from zlib import crc32

import pymysql

from airflow_cdc_provider.connectors.sources.mysql import charset_tables
from airflow_cdc_provider.connectors.sources.mysql.charsets import NO_CHARACTER, UNICODE, by_codec, codes_of
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB

PYTHON = {
    "armscii8": "latin_1",
    "dec8": "latin_1",
    "eucjpms": "euc_jp",
    "euckr": "cp949",
    "geostd8": "cp1252",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "hp8": "hp_roman8",
    "keybcs2": "cp852",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "sjis": "shift_jis",
    "swe7": "ascii",
    "tis620": "tis_620",
    "ujis": "euc_jp",
}
"""The codec that is like the server's; others have the server's name."""

CHARSETS = """
SELECT character_set_name, GROUP_CONCAT(id ORDER BY id SEPARATOR ', ') FROM information_schema.collations
WHERE id IS NOT NULL GROUP BY character_set_name ORDER BY character_set_name
"""
HEAD = '''"""How the conversions of character sets differ between the server and Python.

Generated from MariaDB by ``python -m tests.connectors.charset_tables``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class CharsetTable(NamedTuple):
    """``collations``: their numbers. ``codec``: of Python. ``differences``: see ``charsets``. ``checksum``: CRC-32, in
    UTF-8, of the server's conversion of all codes."""

    collations: tuple[int, ...]
    codec: str
    differences: str
    checksum: int


TABLES: Mapping[str, CharsetTable] = {
'''
WIDTH = 110


def main() -> None:
    with EmbeddedMariaDB() as server:
        login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        with pymysql.connect(charset="utf8mb4", **login) as connection:  # type: ignore[call-overload]
            Path(charset_tables.__file__).write_text(generated(connection))


def generated(connection: pymysql.Connection[Any]) -> str:
    with connection.cursor() as cursor:
        cursor.execute(CHARSETS)
        charsets = [(name, numbers) for name, numbers in cursor.fetchall() if name not in UNICODE and name != "binary"]
    lines = chain.from_iterable(_table(connection, name, numbers) for name, numbers in charsets)
    return HEAD + "\n".join([*lines, "}", ""])


def converted(connection: pymysql.Connection[Any], charset: str) -> dict[bytes, str]:
    """Every code → its character by the server, ``?`` if it has none."""
    codes = list(codes_of(charset))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT CONVERT(_{charset} X'{b''.join(codes).hex()}' USING utf8mb4)")
        ((text,),) = cursor.fetchall()
    return dict(zip(codes, text, strict=True))


def _table(connection: pymysql.Connection[Any], charset: str, collations: str) -> Iterator[str]:
    found, codec = converted(connection, charset), PYTHON.get(charset, charset)
    differing = [code for code, character in found.items() if character != _python(code, codec)]
    listed = " ".join(_entries(list(found), differing, found))
    lines = wrap(listed, WIDTH, drop_whitespace=False) or [""]
    yield f'    "{charset}": CharsetTable('
    yield f"        ({collations}),"
    yield f'        "{codec}",'
    yield "\n".join(f'        "{line}"' for line in lines) + ","
    yield f"        0x{crc32(''.join(found.values()).encode()):08X},"
    yield "    ),"


def _python(code: bytes, codec: str) -> str:
    """As ``charsets`` reads the codec, with the server's sign for no character."""
    return by_codec(code, codec) or NO_CHARACTER


def _entries(codes: Sequence[bytes], differing: Sequence[bytes], found: dict[bytes, str]) -> Iterator[str]:
    """Successive codes with successive characters, or with none, are one entry."""
    numbers = {code: number for number, code in enumerate(codes)}
    runs: list[list[bytes]] = []
    for code in differing:
        last = runs[-1][-1] if runs else b""
        if last and numbers[code] == numbers[last] + 1 and _step(found[last], found[code]):
            runs[-1].append(code)
        else:
            runs.append([code])
    for run in runs:
        character = "" if found[run[0]] == NO_CHARACTER else f"{ord(found[run[0]]):x}"
        yield f"{run[0].hex()}={character}" + (f"*{len(run)}" if len(run) > 1 else "")


def _step(last: str, character: str) -> bool:
    if NO_CHARACTER in (last, character):
        return last == character
    return ord(character) == ord(last) + 1


if __name__ == "__main__":
    main()
