"""Positions of thousands of events at once. ``positions`` reads them one by one, and reads those that this cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.decoders.common.columns import NotVectorizable, is_number, is_text
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.debezium.positions import (
    BEHIND_ALL_ROWS,
    PLACES,
    SEQUENCE,
    ReadPosition,
    file_digits,
)
from airflow_cdc_provider.connectors.json_columns import hex_digits

NAMED_SEQUENCE = SEQUENCE.pattern.replace("(\\d", "(?P<last>\\d", 1).replace('|"?(\\d', '|"?(?P<own>\\d', 1)
MOST_DIGITS = 18

Ends = tuple[pa.StringArray, pa.StringArray]
"""``at`` and ``ordinal`` of each event, as a Place has them."""


@dataclass(frozen=True)
class SourceColumns:
    """What is told of events beside their rows. ``source``: the fields of their source blocks. ``total_order``: NULL
    where the connector does not tell it. ``snapshot`` as a change record says it."""

    source: Mapping[str, pa.Array]
    total_order: pa.Array
    snapshot: pa.StringArray
    offsets: Sequence[int]


def event_positions(connector: str, facts: SourceColumns) -> Ends:
    """Raises NotVectorizable where an event has none."""
    quick = QUICK.get(connector)
    return (quick(facts) if quick else None) or _one_by_one(PLACES[connector][0], facts)


def _one_by_one(tell: ReadPosition, facts: SourceColumns) -> Ends:
    source = pa.StructArray.from_arrays(list(facts.source.values()), list(facts.source)).to_pylist()
    told, odd = [], set()
    columns = zip(source, facts.total_order.to_pylist(), facts.snapshot.to_pylist(), facts.offsets, strict=True)
    for n, one in enumerate(columns):
        try:
            told.append(tell(*one, False))
        except DecodeError:
            odd.add(n)
    if odd:
        raise NotVectorizable(odd)
    return pa.array([one.at for one in told], pa.string()), pa.array([one.ordinal for one in told], pa.string())


def _mysql(facts: SourceColumns) -> Ends | None:
    file, pos, row = (facts.source.get(name) for name in ("file", "pos", "row"))
    if file is None or pos is None or row is None or not is_text(file) or file.null_count:
        return None
    if not (_is_place(pos) and _is_place(row, 1 << 32, may_miss=True)):
        return None
    files = file.dictionary_encode()
    try:
        numbers = [file_digits(one) for one in files.dictionary.to_pylist()]
    except DecodeError:
        return None
    digits = pa.array(numbers, pa.string()).take(files.indices)
    copied = pc.equal(facts.snapshot, "incremental")
    rows = pc.if_else(copied, BEHIND_ALL_ROWS, pc.fill_null(row, 0).cast(pa.int64()))
    at = pc.binary_join_element_wise(digits, hex_digits(pos, 16), hex_digits(rows, 8), "")
    return at, pa.repeat("", len(at))


def _postgresql(facts: SourceColumns) -> Ends | None:
    sequence, lsn = facts.source.get("sequence"), facts.source.get("lsn")
    if sequence is None or lsn is None or not is_text(sequence) or sequence.null_count:
        return None
    told = pc.extract_regex(sequence, f"^{NAMED_SEQUENCE}$")
    last = told.field("last")
    if told.null_count or not _is_place(lsn) or pc.max(pc.binary_length(last)).as_py() > MOST_DIGITS:
        return None
    before = pc.if_else(pc.equal(last, ""), "0", last).cast(pa.int64())
    unsaid = pc.equal(before, 0)
    first = pc.and_(pc.not_equal(facts.snapshot, "none"), unsaid)
    copied = pc.if_else(pc.equal(facts.snapshot, "initial"), lsn, pa.array(facts.offsets, pa.int64()))
    ordinal = pc.if_else(first, copied, pc.fill_null(facts.total_order, 0))
    ended = pc.if_else(unsaid, lsn, before)
    at = pc.binary_join_element_wise(hex_digits(ended, 16), hex_digits(lsn, 16), "")
    return pc.if_else(first, "0" * 32, at), hex_digits(ordinal, 16)


QUICK: Mapping[str, Callable[[SourceColumns], Ends | None]] = {
    "mysql": _mysql,
    "mariadb": _mysql,
    "postgresql": _postgresql,
}


def _is_place(numbers: pa.Array, limit: int = 1 << 63, may_miss: bool = False) -> bool:
    if may_miss and pa.types.is_null(numbers.type):
        return True
    if not is_number(numbers) or (numbers.null_count and not may_miss):
        return False
    ends = pc.min_max(numbers).as_py()
    return ends["min"] is None or (ends["min"] >= 0 and ends["max"] < limit)
