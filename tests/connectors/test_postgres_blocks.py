"""Changes decoded in a batch equal changes decoded one by one, whatever the batch contains."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from struct import pack

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.source import Boundary, Ignored, StreamItem
from airflow_cdc_provider.connectors.sources.postgres.change_runs import FEW
from airflow_cdc_provider.connectors.sources.postgres.decode import PgoutputDecoder
from airflow_cdc_provider.connectors.sources.postgres.schemas import Catalog
from airflow_cdc_provider.connectors.sources.postgres.types import logical_type
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import Columns, TableRule
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from tests.blocks import unpacked
from tests.model import seeds

OIDS = (16, 17, 20, 21, 25, 700, 701, 1082, 1114, 1184, 1700, 2950, 3802)
NUMERIC_10_2 = (10 << 16 | 2) + 4
BEYOND = 1 << 62
UNCHANGED = object()

PLAIN: dict[int, tuple[bytes, ...]] = {
    16: (b"t", b"f"),
    17: (b"\\x00ff", b"\\x"),
    20: (b"0", b"12", b"-9223372036854775808"),
    21: (b"7", b"-32768"),
    25: (b"", b"a", b'quo"te', b"back\\slash", b"line\nbreak\x01", "žluťoučký 🐎".encode(), b"x" * 300, b"null"),
    700: (b"1.5", b"-2.25", b"1e+20"),
    701: (b"0.1", b"0", b"1e-300", b"-123.456"),
    1082: (b"2024-05-06", b"0001-01-01"),
    1114: (b"2024-05-06 07:08:09", b"2024-05-06 07:08:09.1", b"2024-05-06 07:08:09.123456"),
    1184: (b"2024-05-06 07:08:09+00", b"2024-05-06 07:08:09.25+00"),
    1700: (b"1.50", b"-0.05", b"12345678.90"),
    2950: (b"0b9c7f6e-0000-4000-8000-00000000000a",),
    3802: (b'{"a": 1, "b": "c"}', b"[]", b'"\\u0001"'),
}
ODD: dict[int, tuple[bytes, ...]] = {
    16: (b"", b"true", b"x", b"tf"),
    17: (b"", b"00", b"\\xzz", b"\\x0"),
    20: (b"", b"-", b"-0", b"007", b"-05", b"+5", b"1_0", b"1.5", b" 1", b"--1", b"1-"),
    25: (b"\xff", b"\xc3", b"\xed\xa0\x80"),
    701: (b"-0", b"-0.0", b"NaN", b"Infinity", b"-Infinity", b"", b"1_0", b" 1", b"x1", b"1e999", b"0x10"),
    1082: (b"infinity", b"0044-03-15 BC", b"10000-01-01", b"", b"2024-13-99"),
    1114: (b"infinity", b"-infinity", b"0044-03-15 00:00:00.5 BC", b"10000-01-01 00:00:00.5", b"", b"x" * 19),
    1184: (b"infinity", b"+00", b"00", b"", b"2024-05-06 07:08:09+01", b"10000-01-01 00:00:00+00"),
    1700: (b"NaN", b"Infinity", b"", b'1"2', b"\xe91"),
    2950: (b'"', b"\xe9", b""),
}


def cell(random: Random, oid: int, odd: bool) -> bytes:
    match random.randrange(6) if odd else 0:
        case 4:
            return random.choice(ODD.get(oid, PLAIN[oid]))
        case 5:
            return random.randbytes(random.randrange(30))
    return random.choice(PLAIN[oid])


def tuple_data(values: Iterable[object]) -> bytes:
    listed = list(values)
    parts = [b"n" if v is None else b"u" if v is UNCHANGED else b"t" + pack(">I", len(v)) + v for v in listed]  # type: ignore[arg-type]
    return pack(">H", len(listed)) + b"".join(parts)  # type: ignore[arg-type]


def relation(oid: int, name: str, identity: str, columns: list[tuple[str, int, bool]]) -> bytes:
    attributes = b"".join(
        bytes([in_key]) + column.encode() + b"\0" + pack(">Ii", kind, NUMERIC_10_2 if kind == 1700 else -1)
        for column, kind, in_key in columns
    )
    head = b"R" + pack(">I", oid) + b"public\0" + name.encode() + b"\0" + identity.encode()
    return head + pack(">H", len(columns)) + attributes


def stream_of(random: Random) -> tuple[list[TableTask], list[tuple[int, bytes]]]:
    """Two copied tables and another one, in transactions of every size, with rows of every kind."""
    tasks, relations, kinds = [], [], {}
    odd = random.random() < 0.6
    for oid, name in ((1, "a"), (2, "b"), (3, "stranger")):
        types = [23, *random.choices(OIDS, k=random.randint(1, 5))]
        identity = random.choice("dfn")
        keyed = identity == "d" or random.random() < 0.5
        names = [f'c"{n}' for n in range(len(types))]
        columns = tuple(
            Column(column, logical_type(kind, NUMERIC_10_2 if kind == 1700 else -1, {}))
            for column, kind in zip(names, types, strict=True)
        )
        left_out = random.choice([(), (names[-1],), (names[1],)])
        kept = tuple(column for column in columns if column.name not in left_out)
        schema = TableSchema(f"public.{name}", kept, (names[0],) if keyed else ())
        rule = TableRule(schema.table, columns=Columns(exclude=left_out))
        if name != "stranger":
            tasks.append(TableTask(schema.table, name, schema, rule, "0" * 64, TableState.REPLICATING))
        attributes = [(c, k, keyed and c == names[0]) for c, k in zip(names, types, strict=True)]
        relations.append(relation(oid, name, identity, attributes))
        kinds[oid] = types, identity

    def row(oid: int) -> list[object]:
        key = str(random.randint(-3, 3)).encode()
        others = kinds[oid][0][1:]
        return [key, *(None if random.random() < 0.1 else cell(random, kind, odd) for kind in others)]

    def message(oid: int) -> bytes:
        new, full, letter = row(oid), kinds[oid][1] == "f", random.choice("IUUD")
        if odd and random.random() < 0.2:
            new = [UNCHANGED if n and random.random() < 0.5 else value for n, value in enumerate(new)]
        moved = random.random() < 0.1
        old = b"O" + tuple_data([b"9" if moved else new[0], *row(oid)[1:]])
        if not full:
            old = b"K" + tuple_data([new[0], *(None for _ in new[1:])])
        body = b"N" + tuple_data(new)
        body = {"I": body, "U": old + body if full or moved else body, "D": old}[letter]
        whole = letter.encode() + pack(">I", oid) + body
        return whole[: random.randint(5, len(whole))] + random.randbytes(2) if odd and random.random() < 0.05 else whole

    stream: list[tuple[int, bytes]] = []
    lsn = 100
    for number in range(random.randint(1, 4)):
        commit = 1000 * (number + 1)
        stream.append((lsn, b"B" + pack(">QqI", commit, number, number)))
        if number == 0:
            stream += [(0, one) for one in relations]
        for oid in random.choices((1, 1, 1, 2, 3), k=random.randint(0, 4)):
            for _ in range(random.choice((1, FEW, 3 * FEW))):
                lsn += random.choice((0, 1))
                stream.append((lsn, message(oid)))
        stream.append((commit, b"C" + pack(">BQQq", 0, commit, commit + 10, number)))
    return tasks, stream


def records(items: Iterable[StreamItem]) -> dict[str, list[ChangeRecord]]:
    """The records of each table in their order."""
    found: dict[str, list[ChangeRecord]] = {}
    for item in unpacked(items):
        if isinstance(item, ChangeRecord):
            found.setdefault(item.table, []).append(item)
    return found


def decoded(
    tasks: list[TableTask], stream: list[tuple[int, bytes]], together: int, limit: int = BEYOND
) -> list[StreamItem]:
    decoder = PgoutputDecoder(tasks, Catalog({}, {}), 1, 0, limit)
    for at in range(0, len(stream), together):
        decoder.feed(stream[at : at + together])
        if decoder.ended:
            break
    return decoder.items


def test_many_plain_changes_are_one_block() -> None:
    schema = TableSchema("public.a", tuple(Column(f"c{oid}", logical_type(oid, NUMERIC_10_2, {})) for oid in OIDS))
    task = TableTask("public.a", "a", schema, TableRule("public.a"), "0" * 64, TableState.REPLICATING)
    rows = [b"I" + pack(">I", 1) + b"N" + tuple_data(PLAIN[oid][0] for oid in OIDS)] * (2 * FEW)
    stream = [b"B" + pack(">QqI", 1, 1, 1), relation(1, "a", "d", [(f"c{oid}", oid, False) for oid in OIDS]), *rows]
    schema_, schema_record, block = decoded([task], [(1, one) for one in stream], 1000)
    assert (schema_, schema_record.op, len(records([block])["public.a"])) == (schema, "schema", 2 * FEW)  # type: ignore[union-attr]
    assert isinstance(block, Block)


def ignored(items: Iterable[StreamItem]) -> int:
    return sum(item.count for item in items if isinstance(item, Ignored))


@settings(max_examples=seeds.histories(60))
@given(st.integers(0, 1 << 40), st.sampled_from((7, 60, 10_000)))
def test_changes_decoded_in_a_batch_equal_changes_decoded_one_by_one(seed: int, together: int) -> None:
    tasks, stream = stream_of(Random(seed))
    one_by_one, at_once = decoded(tasks, stream, 1), decoded(tasks, stream, together)
    assert records(at_once) == records(one_by_one)
    assert ignored(at_once) == ignored(one_by_one)
    boundaries = [item for item in one_by_one if isinstance(item, Boundary)]
    found = [item for item in at_once if isinstance(item, Boundary)]
    assert found[-1:] == boundaries[-1:] and {one.position["slot"] for one in found} <= {
        one.position["slot"] for one in boundaries
    }


@settings(max_examples=seeds.histories(40))
@given(st.integers(0, 1 << 40), st.integers(0, 5000))
def test_records_before_a_boundary_belong_to_ended_transactions(seed: int, limit: int) -> None:
    tasks, stream = stream_of(Random(seed))
    items = decoded(tasks, stream, 10_000, limit)
    ends = [n for n, item in enumerate(items) if isinstance(item, Boundary)]
    whole = decoded(tasks, stream, 1, limit)
    last = max((n for n, item in enumerate(whole) if isinstance(item, Boundary)), default=-1)
    assert records(items[: max(ends, default=-1) + 1]) == records(whole[: last + 1])
