"""Text of every character set is the server's own text, from the binlog and from a copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pymysql
import pytest

from airflow_cdc_provider.connectors.sources.mysql import charset_tables, charsets, server_charsets
from airflow_cdc_provider.connectors.sources.mysql.charset_tables import TABLES
from airflow_cdc_provider.connectors.sources.mysql.charsets import (
    NO_CHARACTER,
    UNICODE,
    NoText,
    codes_of,
    conversion,
    decoder,
    every_text,
    has_conversion,
)
from airflow_cdc_provider.connectors.sources.mysql.server_charsets import convertible, converts_alike
from airflow_cdc_provider.core.errors import BadRecordFound
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.charset_tables import converted, generated
from tests.connectors.mysql_database import Rows, Shop, fold, holes, records
from tests.mariadb import IS_MYSQL, WITHOUT_NAMES, embedded, mariadb_only

pytestmark = pytest.mark.server

CHARSETS = "SELECT character_set_name FROM information_schema.character_sets WHERE character_set_name <> 'binary'"
TEXT_BYTES = 1 << 20


@pytest.fixture
def shop(mariadb: EmbeddedMariaDB) -> Shop:
    shop = Shop(mariadb)
    shop.sql("SET sql_mode = ''")
    return shop


def server_charsets_of(shop: Shop) -> list[str]:
    return sorted(name for (name,) in shop.ask(CHARSETS))


def inserts(number: int, table: str, column: str, data: bytes) -> str:
    return f"INSERT INTO {table} (id, {column}) VALUES ({number}, X'{data.hex()}')"


@mariadb_only
def test_the_tables_are_generated_from_this_server(shop: Shop) -> None:
    assert generated(shop.connection) == Path(charset_tables.__file__).read_text()


@mariadb_only
def test_every_character_set_of_the_server_has_a_conversion_and_the_server_has_the_same(shop: Shop) -> None:
    names = server_charsets_of(shop)
    assert len(names) > 35 and all(map(has_conversion, names))
    assert all(converts_alike(shop.connection, name) for name in names)
    assert convertible(shop.connection, [*names, "latin9", ""]) == frozenset(names)


def test_the_codes_of_a_character_set_are_those_that_the_server_stores(shop: Shop) -> None:
    shop.sql("CREATE TEMPORARY TABLE codes (b varbinary(3)) ENGINE = MEMORY")
    of_three = [bytes([first, a, b]) for first in (0x8E, 0x8F) for a in range(0xA0, 256) for b in range(0xA0, 256)]
    codes = [bytes([a]) for a in range(256)] + [bytes([a, b]) for a in range(0x80, 256) for b in range(256)] + of_three
    for first in range(0, len(codes), 8000):
        values = ",".join(f"(X'{code.hex()}')" for code in codes[first : first + 8000])
        shop.sql(f"INSERT INTO codes VALUES {values}")
    for charset in TABLES:
        text = f"CONVERT(b USING {charset})"
        stored = f"SELECT b FROM codes WHERE CHAR_LENGTH({text}) = 1 AND CAST({text} AS BINARY) = b"
        assert {code for (code,) in shop.ask(stored)} == set(codes_of(charset)), charset


def test_every_code_of_every_character_set_is_the_servers_text_from_binlog_and_copy(shop: Shop) -> None:
    """Each text has all codes that have a character."""
    names = server_charsets_of(shop)
    columns = ", ".join(f"of_{name} longtext CHARACTER SET {name}" for name in names)
    shop.sql(f"CREATE TABLE w (id int PRIMARY KEY, {columns})")
    task = shop.task("w")
    shop.window(task)
    texts = [(name, b"".join(conversion(name))) for name in names if name in TABLES]
    texts += [(name, data) for name in names if name in UNICODE for data, _ in every_text(name)]
    for number, (name, data) in enumerate(texts):
        shop.sql(inserts(number, "w", f"of_{name}", data))
    items = shop.window(task)
    streamed: Rows = {}
    fold(streamed, records(items))
    _, copied = shop.copied(task)
    assert not holes(items) and len(streamed) == len(texts) and copied == streamed
    for name in names:
        shown = dict(shop.ask(f"SELECT id, CONVERT(of_{name} USING utf8mb4) FROM w WHERE of_{name} IS NOT NULL"))
        assert shown and {key: copied[f"[{key}]"][f"of_{name}"] for key in shown} == shown, name


def test_every_code_without_a_character_is_refused(shop: Shop) -> None:
    for charset in TABLES:
        read = decoder(charset)
        for code, character in converted(shop.connection, charset).items():
            if character == NO_CHARACTER and code != b"?":
                with pytest.raises(NoText, match=f"the character set {charset} has no character for"):
                    read(b"a" + code)
            else:
                assert read(code + code) == character + character


SAMPLES = {
    "sjis": ("433a815f74656d70", "C:\\temp"),
    "euckr": (None, "똠방각하 샾"),
    "koi8u": (None, "• пункт"),
    "tis620": (None, "ก"),
    "armscii8": ("b2b3", "Աա"),
    "cp866": ("fcfd", "ⁿ²"),
    "swe7": ("5b5c5d", "ÄÖÅ"),
}


@pytest.mark.parametrize("charset", SAMPLES)
def test_a_text_after_the_copy_is_the_servers(shop: Shop, charset: str) -> None:
    raw, text = SAMPLES[charset]
    shop.sql(f"CREATE TABLE t (id int PRIMARY KEY, t varchar(50) CHARACTER SET {charset})")
    task = shop.task("t")
    shop.window(task)
    value = f"X'{raw}'" if raw else f"'{text}'"
    shop.sql(f"INSERT INTO t VALUES (2, {value})")
    streamed: Rows = {}
    fold(streamed, records(shop.window(task)))
    assert streamed["[2]"]["t"] == text == shop.copied(task)[1]["[2]"]["t"]


UNMAPPED = {
    "sjis": "8540",
    "ascii": "80",
    "utf8mb3": "eda080",
    "utf8mb4": "eda080",
    "ucs2": "d83dde00",
    "utf32": "0000d800",
}


@pytest.mark.parametrize("charset", UNMAPPED)
@pytest.mark.skipif(IS_MYSQL, reason="MySQL stores no surrogates")
def test_a_code_without_a_character_stops_stream_and_copy_in_words(shop: Shop, charset: str) -> None:
    shop.sql(f"CREATE TABLE odd (id int PRIMARY KEY, t varchar(9) CHARACTER SET {charset})")
    task = shop.task("odd")
    shop.window(task)
    shop.sql(inserts(1, "odd", "t", bytes.fromhex(UNMAPPED[charset])))
    (record,) = records(shop.window(task))
    saved = undecoded(record)
    assert record.op == Operation.UNREADABLE and saved is not None
    words = f"a code that the character set {charset} has no character for"
    assert words in saved.reason and "correct the text at the source" in saved.reason and saved.columns == ("t",)
    with pytest.raises(BadRecordFound) as refused:
        shop.copied(task)
    (problem,) = refused.value.problems
    assert (problem.code, problem.columns) == ("CPY014", ("t",)) and words in problem.found


def test_a_character_set_that_a_server_converts_otherwise_is_not_convertible(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table without its only difference, as for a server that has another character there."""
    python = bytes(range(256)).decode("koi8_u")
    other = TABLES["koi8u"]._replace(differences="", checksum=crc32(python.encode()))
    monkeypatch.setitem(charset_tables.TABLES, "koi8u", other)  # type: ignore[arg-type]
    caches = (charsets.conversion, charsets.decoder, server_charsets._questions)
    for one in caches:
        one.cache_clear()
    assert has_conversion("koi8u") and convertible(shop.connection, ["koi8u", "koi8r"]) == {"koi8r"}
    monkeypatch.setitem(charset_tables.TABLES, "koi8u", other._replace(checksum=1))  # type: ignore[arg-type]
    for one in caches:
        one.cache_clear()
    assert not has_conversion("koi8u")
    monkeypatch.undo()
    for one in caches:
        one.cache_clear()


def test_statements_of_a_session_with_another_character_set_name_the_same_tables(shop: Shop) -> None:
    shop.sql("CREATE TABLE `bücher` (id int PRIMARY KEY)", "INSERT INTO `bücher` VALUES (1)")
    task = shop.task("bücher")
    shop.window(task)
    server = shop.server
    login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    for charset, collation in (("latin1", None), ("latin1", "latin1_bin"), ("cp1250", None), ("utf8mb4", None)):
        with pymysql.connect(charset=charset, collation=collation, **login) as other:  # type: ignore[call-overload]
            other.cursor().execute(f"TRUNCATE {shop.name}.`bücher`")
        assert [record.op for record in records(shop.window(task))] == [Operation.TRUNCATE], (charset, collation)


@pytest.fixture(params=["FULL", WITHOUT_NAMES])
def labels(request: pytest.FixtureRequest) -> Iterator[Shop]:
    with embedded(binlog_row_metadata=request.param) as server:
        yield Shop(server)


def test_labels_are_those_of_their_character_set_or_refused(labels: Shop) -> None:
    """The catalog shows a label above U+FFFF as a question mark, and the binlog without names has none."""
    labels.sql(
        "CREATE TABLE e (id int PRIMARY KEY, e enum('😀', 'ü') CHARACTER SET utf8mb4, j set('あ') CHARACTER SET sjis)"
    )
    task = labels.task("e")
    labels.window(task)
    labels.sql("INSERT INTO e VALUES (1, '😀', 'あ')")
    (record,) = records(labels.window(task))
    assert labels.copied(task)[1]["[1]"] == {"id": 1, "e": "😀", "j": "あ"}
    saved = undecoded(record)
    if saved is None:
        assert record.after == '{"id":1,"e":"😀","j":"あ"}'
    else:
        assert saved.columns == ("e",) and "a label with a question mark" in saved.reason


def test_a_text_above_the_packet_limit_is_copied_whole(shop: Shop) -> None:
    shop.sql("CREATE TABLE big (id int PRIMARY KEY, t longtext CHARACTER SET latin1)")
    task = shop.task("big")
    shop.sql(f"INSERT INTO big VALUES (1, REPEAT('é', {2 * TEXT_BYTES}))")
    ((limit,),) = shop.ask("SELECT @@GLOBAL.max_allowed_packet")
    shop.sql(f"SET GLOBAL max_allowed_packet = {TEXT_BYTES}")
    try:
        _, rows = shop.copied(task)
    finally:
        shop.sql(f"SET GLOBAL max_allowed_packet = {limit}")
    assert rows["[1]"]["t"] == "é" * (2 * TEXT_BYTES)


def test_the_texts_of_unicode_have_every_character() -> None:
    for charset in UNICODE:
        count = sum(len(text) for _, text in every_text(charset))
        assert count == (0x10000 if charset in charsets.OF_TWO_BYTES else 0x110000) - 0x800
        assert all(decoder(charset)(data) == text for data, text in every_text(charset))
