"""Positions of events as Arrow columns: the batch variant of ``positions``, which is the fallback."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.decoders.common.columns import NotVectorizable, is_number, is_text
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.debezium.positions import (
    AFTER_ALL_ROWS,
    POSITIONS,
    SEQUENCE,
    ReadPosition,
    file_digits,
)
from airflow_cdc_provider.connectors.json_columns import hex_digits

NAMED_SEQUENCE = SEQUENCE.pattern.replace("(\\d", "(?P<last>\\d", 1).replace('|"?(\\d', '|"?(?P<own>\\d', 1)
MAX_DIGITS = 18


class PositionColumns(NamedTuple):
    """The EventPosition of each event. ``phased``: None if all are."""

    at: pa.StringArray
    ordinal: pa.StringArray
    phased: pa.BooleanArray | None = None


@dataclass(frozen=True)
class SourceColumns:
    """``source``: the fields of the source blocks. ``total_order``: NULL if unknown. ``snapshot``: as in
    ``ChangeRecord.snapshot``. ``offsets``: of the messages; None if they order nothing."""

    source: Mapping[str, pa.Array]
    total_order: pa.Array
    snapshot: pa.StringArray
    offsets: Sequence[int | None]


def event_positions(connector: str, columns: SourceColumns) -> PositionColumns:
    """Raises NotVectorizable for events without a position."""
    read_columns = BY_CONNECTOR.get(connector)
    return (read_columns(columns) if read_columns else None) or _one_by_one(POSITIONS[connector][0], columns)


def _one_by_one(read_position: ReadPosition, columns: SourceColumns) -> PositionColumns:
    source = pa.StructArray.from_arrays(list(columns.source.values()), list(columns.source)).to_pylist()
    positions, errors = [], set()
    rows = zip(source, columns.total_order.to_pylist(), columns.snapshot.to_pylist(), columns.offsets, strict=True)
    for number, row in enumerate(rows):
        try:
            positions.append(read_position(*row, False))
        except DecodeError:
            errors.add(number)
    if errors:
        raise NotVectorizable(errors)
    at, ordinals, phased = zip(*positions, strict=True)
    return PositionColumns(pa.array(at, pa.string()), pa.array(ordinals, pa.string()), pa.array(phased, pa.bool_()))


def _mysql(columns: SourceColumns) -> PositionColumns | None:
    if (at := _binlog_digits(columns)) is None:
        return None
    ordinal = _ordinals(columns)
    return PositionColumns(at, hex_digits(pc.fill_null(ordinal, 0), 16), ordinal.is_valid())


def _mariadb(columns: SourceColumns) -> PositionColumns | None:
    if (at := _binlog_digits(columns)) is None:
        return None
    ordinal = _ordinals(columns)
    return None if ordinal.null_count else PositionColumns(at, hex_digits(ordinal, 16))


def _ordinals(columns: SourceColumns) -> pa.Array:
    ordinal = pc.coalesce(columns.total_order, pa.array(columns.offsets, pa.int64()))
    return pc.if_else(pc.equal(columns.snapshot, "none"), ordinal, 0)


def _binlog_digits(columns: SourceColumns) -> pa.StringArray | None:
    file, pos, row = (columns.source.get(name) for name in ("file", "pos", "row"))
    if file is None or pos is None or row is None or not is_text(file) or file.null_count:
        return None
    if not (_is_number(pos) and _is_number(row, 1 << 32, nullable=True)):
        return None
    files = file.dictionary_encode()
    try:
        numbers = [file_digits(name) for name in files.dictionary.to_pylist()]
    except DecodeError:
        return None
    digits = pa.array(numbers, pa.string()).take(files.indices)
    is_incremental = pc.equal(columns.snapshot, "incremental")
    rows = pc.if_else(is_incremental, AFTER_ALL_ROWS, pc.fill_null(row, 0).cast(pa.int64()))
    return pc.binary_join_element_wise(digits, hex_digits(pos, 16), hex_digits(rows, 8), "")


def _postgresql(columns: SourceColumns) -> PositionColumns | None:
    sequence, lsn = columns.source.get("sequence"), columns.source.get("lsn")
    if sequence is None or lsn is None or not is_text(sequence) or sequence.null_count:
        return None
    parts = pc.extract_regex(sequence, f"^{NAMED_SEQUENCE}$")
    last = parts.field("last")
    if parts.null_count or not _is_number(lsn) or pc.max(pc.binary_length(last)).as_py() > MAX_DIGITS:
        return None
    previous = pc.if_else(pc.equal(last, ""), "0", last).cast(pa.int64())
    is_unknown = pc.equal(previous, 0)
    is_snapshot = pc.and_(pc.not_equal(columns.snapshot, "none"), is_unknown)
    snapshot_ordinal = pc.if_else(pc.equal(columns.snapshot, "initial"), lsn, pa.array(columns.offsets, pa.int64()))
    ordinal = pc.if_else(is_snapshot, snapshot_ordinal, pc.fill_null(columns.total_order, 0))
    if ordinal.null_count:
        return None
    previous = pc.if_else(is_unknown, lsn, previous)
    at = pc.binary_join_element_wise(hex_digits(previous, 16), hex_digits(lsn, 16), "")
    return PositionColumns(pc.if_else(is_snapshot, "0" * 32, at), hex_digits(ordinal, 16))


BY_CONNECTOR: Mapping[str, Callable[[SourceColumns], PositionColumns | None]] = {
    "mysql": _mysql,
    "mariadb": _mariadb,
    "postgresql": _postgresql,
}


def _is_number(numbers: pa.Array, limit: int = 1 << 63, nullable: bool = False) -> bool:
    if nullable and pa.types.is_null(numbers.type):
        return True
    if not is_number(numbers) or (numbers.null_count and not nullable):
        return False
    ends = pc.min_max(numbers).as_py()
    return ends["min"] is None or (ends["min"] >= 0 and ends["max"] < limit)
