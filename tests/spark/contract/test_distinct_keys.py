"""Two different keys of a source are never one key of a target: two rows, or the table stops."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit

pytestmark = pytest.mark.jvm


def bytes_(*values: bytes) -> list[str]:
    return [b64encode(value).decode() for value in values]


NUMBER = Column("n", LogicalType(Kind.INT32))

# Of two neighbours one is copied, the other arrives by the stream.
KEYS: dict[str, tuple[LogicalType, list[Any]]] = {
    "text": (
        LogicalType(Kind.TEXT),
        [
            *("a", "A", "a ", "a\t", "á", "a\u0301", "ß", "ss", "", " ", "\u0131", "i", "I", "\u200b", "null", "NULL"),
            *(
                "\U0001f600",
                "\U0001f601",
                "\uffff",
                "\U0010ffff",
                "ﬁ",
                "fi",
                "\x01",
                "\x02",
                "\x1a",
                "\x7f",
                "\r",
                "\n",
            ),
            *("\\", "\\\\", "'", "''", '"', "`", "\\n", "\\0", "%", "_", "x" * 255, "x" * 254 + "y"),
        ],
    ),
    "long texts": (LogicalType(Kind.TEXT), ["x" * 254, "x" * 256, "y", "x" * 257, "ü" * 255, "x" * 256 + "y"]),
    "long bytes": (LogicalType(Kind.BYTES), bytes_(b"x" * 1020, b"x" * 1021, b"y", b"x" * 1022)),
    "uuid": (LogicalType(Kind.UUID), [f"00000000-0000-0000-0000-00000000000{n}" for n in "0123abcd"]),
    "zero characters": (LogicalType(Kind.TEXT), ["a", "a\0", "", "\0"]),
    "bytes": (LogicalType(Kind.BYTES), bytes_(b"", b"\0", b" ", b"a", b"a ", b"A", b"a\0")),
    "date": (
        LogicalType(Kind.DATE),
        [
            "0001-01-01",
            "0001-01-02",
            "0999-12-31",
            "1000-01-01",
            "1582-10-04",
            "1582-10-15",
            "9999-12-30",
            "9999-12-31",
        ],
    ),
    "timestamp": (
        LogicalType(Kind.TIMESTAMP),
        [
            *("0001-01-01T00:00:00", "0001-01-01T00:00:00.000001", "1582-10-04T23:59:59", "1582-10-05T00:00:00"),
            *("2024-03-31T02:30:00", "2024-03-31T03:30:00", "9999-12-31T23:59:59.999998", "9999-12-31T23:59:59.999999"),
        ],
    ),
    "timestamptz": (
        LogicalType(Kind.TIMESTAMPTZ),
        [
            *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000001Z", "2024-10-27T00:30:00Z", "2024-10-27T01:30:00Z"),
            *("9999-12-31T23:59:59.999998Z", "9999-12-31T23:59:59.999999Z"),
        ],
    ),
    "int64": (LogicalType(Kind.INT64), [2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1]),
    "decimal": (
        LogicalType(Kind.DECIMAL, 38, 10),
        [f"{'9' * 28}.0000000001", f"{'9' * 28}.0000000002", "0", "0.0000000001"],
    ),
    "decimal with a long scale": (
        LogicalType(Kind.DECIMAL, 38, 36),
        [f"0.{'0' * 35}1", f"0.{'0' * 35}2", f"99.{'9' * 36}", f"99.{'9' * 35}8", f"-0.{'0' * 35}1", "0"],
    ),
    "float64": (
        LogicalType(Kind.FLOAT64),
        [0.1, 0.10000000000000002, 0.0, 5e-324, 1.7976931348623155e308, 1.7976931348623157e308],
    ),
    "float32": (LogicalType(Kind.FLOAT32), [0.1, 0.10000001, 0.0, 1e-45]),
}


REFUSED_BY_SOME = ("zero characters", "long texts", "long bytes")


@pytest.mark.parametrize("kind", REFUSED_BY_SOME)
def test_different_keys_are_different_rows_or_the_table_stops(kit: TargetKit, tmp_path: Path, kind: str) -> None:
    logical, keys = KEYS[kind]
    schema = TableSchema("public.t", (Column("k", logical, nullable=False), NUMBER), ("k",))
    table = KitTable(kit, tmp_path, schema)
    every = [{"k": key, "n": n} for n, key in enumerate(keys)]
    table.copy(every[::2])
    result = table.apply([table.insert(row) for row in every[1::2]])
    if result.outcome is not Outcome.DONE:
        assert result.problem is not None and result.problem.code.startswith("QUA"), result.problem
        assert numbers(kit) == list(range(0, len(keys), 2)), "what stops a table changes nothing"
        return
    require_each_row(kit, table, every)


def test_keys_that_differ_in_one_column_are_different_rows(kit: TargetKit, tmp_path: Path) -> None:
    kinds = [kind for kind in KEYS if kind not in REFUSED_BY_SOME]
    columns = tuple(Column(kind.replace(" ", "_"), KEYS[kind][0], nullable=False) for kind in kinds)
    names = tuple(column.name for column in columns)
    table = KitTable(kit, tmp_path, TableSchema("public.t", (*columns, NUMBER), names))
    first = {name: KEYS[kind][1][0] for name, kind in zip(names, kinds, strict=True)}
    others = [{name: key} for name, kind in zip(names, kinds, strict=True) for key in KEYS[kind][1][1:]]
    every = [{**first, **other, "n": n} for n, other in enumerate([{}, *others])]
    table.copy(every[::2])
    result = table.apply([table.insert(row) for row in every[1::2]])
    assert result.outcome is Outcome.DONE, result.problem
    require_each_row(kit, table, every)


def require_each_row(kit: TargetKit, table: KitTable, every: list[dict[str, Any]]) -> None:
    """Rows with even numbers are deleted, the others changed, and none is confused with another."""
    missing = set(range(len(every))) - set(numbers(kit))
    assert numbers(kit) == list(range(len(every))), [every[n] for n in missing]
    changed = [table.delete(row) for row in every[::2]]
    changed += [table.update({**row, "n": row["n"] + 1000}) for row in every[1::2]]
    result = table.apply(changed)
    assert result.outcome is Outcome.DONE, result.problem
    assert numbers(kit) == [n + 1000 for n in range(1, len(every), 2)]


def test_the_columns_of_a_key_stay_separate(kit: TargetKit, tmp_path: Path) -> None:
    text = LogicalType(Kind.TEXT)
    columns = (
        Column("k", text, nullable=False),
        Column("l", text, nullable=False),
        Column("n", LogicalType(Kind.INT32)),
    )
    table = KitTable(kit, tmp_path, TableSchema("public.t", columns, ("k", "l")))
    pairs = [("a", "b,c"), ("a,b", "c"), ("", "a"), ("a", ""), ('a","b', ""), ("a", 'b","'), ("a|", "b"), ("a", "|b")]
    every = [{"k": one, "l": other, "n": n} for n, (one, other) in enumerate(pairs)]
    table.copy(every[::2])
    result = table.apply([table.insert(row) for row in every[1::2]] + [table.delete(row) for row in every[::2]])
    assert result.outcome is Outcome.DONE, result.problem
    assert numbers(kit) == [1, 3, 5, 7]


@pytest.mark.nightly
def test_a_nan_key_is_one_row(kit: TargetKit, tmp_path: Path) -> None:
    if not kit.has_odd_numbers:
        pytest.skip("such a value is a bad record of this target")
    columns = (Column("k", LogicalType(Kind.FLOAT64), nullable=False), NUMBER)
    table = KitTable(kit, tmp_path, TableSchema("public.t", columns, ("k",)))
    table.copy([{"k": "NaN", "n": 1}, {"k": "Infinity", "n": 2}])
    result = table.apply([table.update({"k": "NaN", "n": 3}), table.insert({"k": "-Infinity", "n": 4})])
    assert result.outcome is Outcome.DONE, result.problem
    assert numbers(kit) == [2, 3, 4]
    result = table.apply([table.delete({"k": "NaN", "n": 3}), table.delete({"k": "Infinity", "n": 2})])
    assert result.outcome is Outcome.DONE, result.problem
    assert numbers(kit) == [4]


def numbers(kit: TargetKit) -> list[int]:
    return sorted(row[0] for row in kit.rows("n"))
