"""Every type has the same canonical value from the binlog and from a copy."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator

import pytest

from airflow_cdc_provider.connectors.source import SplitRead
from airflow_cdc_provider.connectors.sources.mysql.json_binary import json_text
from airflow_cdc_provider.connectors.sources.mysql.types import CatalogColumn, keeps_values
from airflow_cdc_provider.core.spec.definition import Comparison, Condition, OnUnrepresentable
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop, fold, holes, records
from tests.mariadb import IS_MYSQL, WITHOUT_NAMES, embedded, series

pytestmark = pytest.mark.server

COLUMNS = {
    "t": "tinyint", "tu": "tinyint unsigned", "s": "smallint", "su": "smallint unsigned", "m": "mediumint",
    "mu": "mediumint unsigned zerofill", "i": "int", "iu": "int unsigned", "b": "bigint", "bu": "bigint unsigned",
    "d": "decimal(10,3)", "dd": "decimal(65,30)", "dn": "decimal(20,0)", "d38": "decimal(38,9)", "f": "float",
    "db": "double", "bit1": "bit(1)", "bit9": "bit(9)", "c": "char(5)", "cw": "char(255) character set utf8mb4",
    "cb": "binary(5)", "vc": "varchar(300)", "latin": "varchar(20) character set latin1",
    "wide": "varchar(9) character set ucs2", "w16": "varchar(9) character set utf16le",
    "chinese": "varchar(9) character set gbk", "japanese": "varchar(9) character set sjis",
    "greek": "varchar(9) character set greek", "vb": "varbinary(5)", "tt": "tinytext", "tx": "text",
    "lt": "longtext", "bl": "blob", "mb": "mediumblob", "day": "date", "dt": "datetime", "dt3": "datetime(3)",
    "dt6": "datetime(6)", "ts": "timestamp null", "ts4": "timestamp(4) null", "ts6": "timestamp(6) null",
    "tm": "time", "tm1": "time(1)", "tm3": "time(3)", "tm6": "time(6)", "y": "year",
    "e": "enum('a','ü''x,y')", "el": "enum('é') character set latin1", "st": "set('x','y','z')", "js": "json",
    "g": "geometry", "p": "point", "u": "uuid", "i6": "inet6", "i4": "inet4", "inv": "int invisible default 7",
    "computed": "int as (i + 1) stored", "virt": "int as (i + 2) virtual",
}  # fmt: skip
LARGE = {
    "t": "127", "tu": "255", "s": "-32768", "su": "65535", "m": "-8388608", "mu": "16777215", "i": "2147483646",
    "iu": "4294967295", "b": "-9223372036854775808", "bu": "18446744073709551615", "d": "-1234567.891",
    "dd": "-12345678901234567890.123456789012345678901234567890", "dn": "12345678901234567890",
    "d38": "99999999999999999999999999999.999999999", "f": "0.1", "db": "1e300", "bit1": "1", "bit9": "b'100000001'",
    "c": "'ab '", "cw": "REPEAT('☃', 200)", "cb": "x'0001'", "vc": "'ü☃\\0😀'", "latin": "_latin1 x'80ff81'",
    "wide": "'ü☃'", "w16": "'😀'", "chinese": "'中'",
    "japanese": "'日本'", "greek": "'λ'", "vb": "x'00ff'", "tt": "'x'",
    "tx": "'a \"b\" \\n'", "lt": "'long'", "bl": "x'fffe00'", "mb": "x''", "day": "'9999-12-31'",
    "dt": "'2024-02-29 12:34:56'", "dt3": "'2024-02-29 12:34:56.120'", "dt6": "'9999-12-31 23:59:59.999999'",
    "ts": "'2024-02-29 12:34:56'", "ts4": "'2024-02-29 12:34:56.0001'", "ts6": "'2038-01-19 03:14:07.999999'",
    "tm": "'-838:59:59'", "tm1": "'-00:00:00.1'", "tm3": "'-00:00:01.001'", "tm6": "'-01:02:03.000004'", "y": "2155",
    "e": "'ü''x,y'", "el": "'é'", "st": "'z,x'", "js": "'{\"a\": 1.50}'",
    "g": "ST_GeomFromText('LINESTRING(0 0,1 1)')", "p": "Point(1, 2)",
    "u": "'6b1b36cb-05a4-4d6a-a2f2-6b8a4f2a0c11'", "i6": "'2001:db8::ff00:42:8329'",
    "i4": "'10.0.0.1'", "inv": "1",
}  # fmt: skip
SMALL = {
    "t": "-128", "mu": "7", "d": "-0.001", "dd": "0", "dn": "0", "d38": "-0.000000001", "f": "-3.4e38", "db": "-0.0",
    "bit1": "0", "bit9": "0", "c": "''", "cb": "''", "vc": "''", "day": "'0000-00-00'", "dt": "'0000-00-00 00:00:00'",
    "dt3": "'2024-00-10 00:00:00'", "dt6": "'0001-01-01 00:00:00.000001'", "ts": "'0000-00-00 00:00:00'",
    "ts6": "'1970-01-01 00:00:01.5'", "tm": "'838:59:59'", "tm1": "'00:00:00'", "tm3": "'-838:59:58.999'",
    "tm6": "'00:00:00.5'", "y": "0", "e": "'nonesuch'", "st": "''", "js": "'[]'",
    "u": "'f47ac10b-58cc-1372-8567-0e02b2c3d479'", "i6": "'::1.2.3.4'", "i4": "'0.0.0.0'",
}  # fmt: skip


if IS_MYSQL:
    for name in ("u", "i6", "i4"):
        del COLUMNS[name], LARGE[name], SMALL[name]
    COLUMNS["vec"], LARGE["vec"] = "vector(3)", "TO_VECTOR('[1,2.5,-3]')"
    LARGE["js"] = (
        "JSON_OBJECT('day', DATE '2026-01-02', 'n', 1.50, 'm', TIME '10:11:12.5', "
        "'at', TIMESTAMP '2026-01-02 03:04:05', 'f', 1e0, 'raw', x'00ff', 'none', NULL, 'big', 18446744073709551615, "
        "'y', CAST(2026 AS YEAR), 'ü', JSON_ARRAY(1), 'g', ST_GeomFromText('POINT(1 2)'), 'long', REPEAT('x', 70000))"
    )


@pytest.fixture(scope="module", params=["FULL", WITHOUT_NAMES])
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedMariaDB]:
    with embedded(binlog_row_metadata=request.param) as server:
        yield server


def insert(number: int, values: dict[str, str]) -> str:
    return f"INSERT INTO w (id, {', '.join(values)}) VALUES ({number}, {', '.join(values.values())})"


def test_every_type_is_the_same_from_binlog_and_copy(server: EmbeddedMariaDB) -> None:
    shop = Shop(server)
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    shop.sql(f"CREATE TABLE w (id int PRIMARY KEY, {columns}) CHARACTER SET utf8mb4")
    task = shop.task("w", on_unrepresentable=OnUnrepresentable.SET_NULL)
    shop.sql("SET sql_mode = ''", "SET time_zone = '+00:00'", insert(1, LARGE), insert(2, SMALL))
    shop.sql("INSERT INTO w (id) VALUES (3)", "SET time_zone = '+05:00'", "UPDATE w SET inv = 8, id = 4 WHERE id = 3")
    shop.sql("INSERT INTO w (id, ts6) VALUES (5, '2026-01-01 05:00:00.25')")
    items = shop.window(task)
    assert not holes(items)
    streamed: dict[str, dict[str, object]] = {}
    fold(streamed, records(items))
    _, copied = shop.copied(task)
    for row in (*streamed.values(), *copied.values()):  # the four bytes of a float are the value
        row["f"] = row["f"] and struct.pack("<f", row["f"])
    assert copied == streamed
    large = copied["[1]"]
    assert {name: large[name] for name in ("bu", "dd", "bit1", "bit9", "c", "cb", "latin", "vc")} == {
        "bu": "18446744073709551615", "dd": LARGE["dd"], "bit1": True, "bit9": "AQE=", "c": "ab", "cb": "AAEAAAA=",
        "latin": "€ÿ\x81", "vc": "ü☃\0😀",
    }  # fmt: skip
    assert {name: large[name] for name in ("dt3", "ts4", "tm", "tm1", "tm6", "y", "e", "st", "js")} == {
        "dt3": "2024-02-29T12:34:56.120000", "ts4": "2024-02-29T12:34:56.000100Z", "tm": "-838:59:59",
        "tm1": "-00:00:00.1", "tm6": "-01:02:03.000004", "y": 2155, "e": "ü'x,y", "st": "x,z",
        "js": large["js"] if IS_MYSQL else '{"a": 1.50}',
    }  # fmt: skip
    assert copied["[5]"]["ts6"] == "2026-01-01T00:00:00.250000Z"
    assert "computed" not in large and "virt" not in large and copied["[4]"]["inv"] == 8
    small = next(one for one in records(items) if one.key == "[2]")
    image = json.loads(small.after or "")
    assert (image["day"], image["_cdc_text_day"], image["_cdc_text_dt"]) == (None, "0000-00-00", "0000-00-00 00:00:00")
    assert not large["_cdc_text_day"]


def test_the_splits_of_a_copy_contain_each_row_once_and_apply_the_filter(server: EmbeddedMariaDB) -> None:
    shop = Shop(server)
    shop.sql("CREATE TABLE big (id bigint PRIMARY KEY, word varchar(9), at timestamp NULL)")
    rows = "SELECT CAST(seq AS SIGNED) - 20000, IF(seq % 2, 'a', 'A%'), '2026-01-01'"
    shop.sql(f"INSERT INTO big {rows} FROM {series(45000)}")
    copy, rows = shop.copied(shop.task("big"))
    assert isinstance(copy.read, SplitRead)
    assert len(copy.read.splits) == 4 and copy.rows == len(rows) == 45000
    where = [Condition("word", Comparison.IN, ("A%", "b")), Condition("at", Comparison.GREATER, "2025-12-31T00:00:00")]
    _, some = shop.copied(shop.task("big", where=where))
    assert len(some) == 22500, "by bytes, not by the collation"
    assert not shop.copied(shop.task("big", where=[Condition("at", Comparison.IS_NULL)]))[1]


def test_a_copy_has_the_changes_up_to_its_anchor_and_the_stream_has_the_rest(
    server: EmbeddedMariaDB,
) -> None:
    shop = Shop(server)
    shop.sql("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 1), (2, 1)")
    task = shop.task("t")
    with shop.source.copy(task, 1, shop.position, 4) as copy:
        shop.sql("UPDATE t SET n = 2 WHERE id = 1", "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (3, 1)")
        assert isinstance(copy.read, SplitRead)
        found = [row for split in copy.read.splits for part in shop.source.read_split(split, copy.schema)
                 for row in part.to_pylist()]  # fmt: skip
    rows = {f"[{row['id']}]": row for row in found}
    changes = records(shop.window(task))
    after_anchor = [one.order_key > copy.floor for one in changes]
    assert after_anchor == [False, False, True, True, True]
    fold(rows, changes, copy.floor)
    assert rows == {"[1]": {"id": 1, "n": 2}, "[3]": {"id": 3, "n": 1}}


def documents(*values: tuple[int, bytes], names: tuple[bytes, ...] = ()) -> bytes:
    """A small container with counts and offsets of two bytes."""
    entries = 4 + 4 * len(names) + 3 * len(values)
    data = b"".join(names)
    offsets = [entries + sum(map(len, names[:at])) for at in range(len(names))]
    head = b"".join(struct.pack("<HH", offset, len(name)) for offset, name in zip(offsets, names, strict=True))
    for kind, value in values:
        inline = kind in (4, 5, 6)
        head += bytes([kind]) + (value.ljust(2, b"\0") if inline else struct.pack("<H", entries + len(data)))
        data += b"" if inline else value
    return struct.pack("<HH", len(values), entries + len(data)) + head + data


def test_binary_json_of_mysql_is_written_as_the_server_writes_it() -> None:
    array = documents((5, struct.pack("<h", -1)), (12, b"\x05hello"), (4, b"\x01"), (4, b"\x00"))
    assert json_text(b"\x02" + array) == '[-1, "hello", true, null]'
    double, inner = struct.pack("<d", 1.5), documents()
    assert json_text(b"\x00" + documents((11, double), (2, inner), names=(b"a", b"b"))) == '{"a": 1.5, "b": []}'
    assert [json_text(bytes.fromhex(one)) for one in ("09ffffffffffffffff", "0affffffffffffffff", "0c0361c3bc")] == [
        "-1", "18446744073709551615", '"aü"',
    ]  # fmt: skip
    assert json_text(b"\x0b" + struct.pack("<d", 1e300)) == "1e300" and json_text(b"") == "null"
    assert json_text(bytes([15, 246, 8, 10, 3]) + bytes.fromhex("8000000400d2")) == "4.210"
    assert json_text(bytes([15, 246, 8, 10, 3]) + bytes.fromhex("7ffffffbff2d")) == "-4.210"
    moment = (((2026 * 13 + 2) << 5 | 3) << 17 | (4 << 12 | 5 << 6 | 6)) << 24 | 700
    assert json_text(bytes([15, 12, 8]) + struct.pack("<q", moment)) == '"2026-02-03 04:05:06.000700"'
    assert json_text(bytes([15, 252, 2, 0, 255])) == '"base64:type252:AP8="'


def test_whether_an_altered_type_keeps_its_values() -> None:
    def kept(before: str, after: str) -> bool:
        return keeps_values(before, CatalogColumn("c", after.partition("(")[0], after, True))

    assert kept("int(11)", "int(10) unsigned") and kept("smallint(6)", "int(11)") and not kept("int(11)", "smallint(6)")
    assert kept("varchar(10)", "varchar(20)") and not kept("varchar(20)", "varchar(10)")
    assert kept("datetime", "datetime(6)") and not kept("datetime(6)", "datetime") and not kept("time(3)", "time(1)")
    assert kept("enum('a','b')", "enum('a','b','c')") and not kept("enum('a','b')", "enum('b','a')")
    assert kept("varchar(20)", "varchar") and kept("text", "longtext")
