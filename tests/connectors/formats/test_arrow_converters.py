"""A converter of columns gives the texts that the converter of values gives for each value."""

from __future__ import annotations

from base64 import b64encode
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from airflow_cdc_provider.connectors.decoders.common.column_texts import ArrowConverter
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.shapes import column_type
from airflow_cdc_provider.connectors.decoders.common.values import Converter
from airflow_cdc_provider.connectors.decoders.debezium import converters, semantics
from airflow_cdc_provider.connectors.decoders.debezium.semantics import CONNECT, DECIMAL, TIME, Semantic
from airflow_cdc_provider.connectors.decoders.ydb import types
from airflow_cdc_provider.core.table.schema import Column, LogicalType
from tests.model import seeds

EDGES = (0, 1, -1, 127, -128, 255, 1 << 15, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 32, (1 << 63) - 1, -(1 << 63))
DAYS = (0, -1, 19_782, -719_162, -719_163, 2_932_896, 2_932_897)
MOMENTS = (0, -1, 1_709_465_873_584_266, 1_709_465_873_000_000, -62_135_596_800_000_000, 253_402_300_800_000_000)
TEXTS = ("", "a", 'quo"te', "back\\slash", "\\", "line\nbreak", "\x01", "žluťoučký 🐎", "null", "\x7f")
ISO = (
    "2024-03-03T11:37:53.584266Z",
    "2024-03-03T11:37:53.000000Z",
    "2024-03-03T11:37:53Z",
    "2024-02-30T00:00:00Z",
    "2024-03-03T24:00:00Z",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "2024-03-03T11:37:53.5Z",
    "2024-03-03T11:37:53+02:00",
)
DECIMALS = ("0.00", "-0.00", "1.50", "-1.50", "99999999.99", "100000000.00", "1.5", "01.50", "1.500", "1e2", ".50", "")


def unscaled(random: Random) -> str:
    number = random.choice((*EDGES, random.randrange(-(10**10), 10**10)))
    digits = number.to_bytes(max((number.bit_length() + 8) // 8, random.choice((1, 2, 8))), "big", signed=True)
    return random.choice((b64encode(digits).decode(),) * 9 + ("AB==", "A===", "AA=A", "", "A A=", "AAAAAAAAAAAAAAAA"))


def some(random: Random, name: str) -> Any:
    return {
        "number": lambda: random.choice(EDGES),
        "day": lambda: random.choice(DAYS),
        "moment": lambda: random.choice((*MOMENTS, random.randrange(MOMENTS[-2], MOMENTS[-1]))),
        "milliseconds": lambda: random.choice([*(one // 1000 for one in MOMENTS), random.randrange(-(10**12), 10**12)]),
        "text": lambda: random.choice(TEXTS),
        "iso": lambda: random.choice(ISO),
        "decimal": lambda: random.choice(DECIMALS),
        "unscaled": lambda: unscaled(random),
        "flag": lambda: random.choice((True, False)),
        "float": lambda: random.choice((1.5, -0.1, 1e300, 1e-300, 5e-324, 123456789.125, 1e16, 0.0, -0.0)),
    }[name]()


DEBEZIUM = {
    Semantic("int16"): "number",
    Semantic("int32"): "number",
    Semantic("int64"): "number",
    Semantic("boolean"): "flag",
    Semantic("double"): "float",
    Semantic("string"): "text",
    Semantic("int32", f"{TIME}Date"): "day",
    Semantic("int32", f"{CONNECT}Date"): "day",
    Semantic("int64", f"{TIME}MicroTimestamp"): "moment",
    Semantic("int64", f"{TIME}Timestamp"): "milliseconds",
    Semantic("bytes", DECIMAL, (("scale", "2"), ("connect.decimal.precision", "10"))): "unscaled",
    Semantic("bytes", DECIMAL, (("scale", "6"), ("connect.decimal.precision", "18"))): "unscaled",
    Semantic("bytes", DECIMAL, (("scale", "2"), ("connect.decimal.precision", "2"))): "unscaled",
}
YDB = {
    "Int8": "number",
    "Uint8": "number",
    "Uint16": "number",
    "Int32": "number",
    "Uint32": "number",
    "Int64": "number",
    "Uint64": "number",
    "Bool": "flag",
    "Double": "float",
    "Utf8": "text",
    "Timestamp": "iso",
    "Datetime": "iso",
    "Timestamp64": "moment",
    "Decimal(10,2)": "decimal",
}


def require_equal_texts(
    quick: ArrowConverter | None, convert: Converter, warnings: list[str], kind: LogicalType, name: str
) -> None:
    seed = seeds.seed()
    random, tried = Random(f"{seed} {name} {kind}"), 0
    assert quick is not None
    for _ in range(400):
        values = [None if random.random() < 0.1 else some(random, name) for _ in range(random.choice((1, 1, 2, 3)))]
        shown = next((one for one in values if one is not None), None)
        arrow_type = column_type(Decimal(shown) if isinstance(shown, float) else shown, kind.kind)
        found = quick(pa.array(values, arrow_type))
        if found is None:
            continue
        tried += 1
        expected = [None if one is None else text_or_error(one, convert) for one in values]
        assert (found.to_pylist(), warnings) == (expected, []), f"CDC_SEED={seed}: {values}"
    assert tried > 30


def text_or_error(value: Any, convert: Converter) -> str:
    try:
        return convert(Decimal(repr(value)) if isinstance(value, float) else value)
    except DecodeError as error:
        return str(error)


@pytest.mark.parametrize("semantic", DEBEZIUM, ids=str)
def test_converters_of_debezium_agree(semantic: Semantic) -> None:
    warnings: list[str] = []
    convert = converters.semantic_converter(semantic, warnings.append)
    require_equal_texts(
        converters.arrow_converter(semantic), convert, warnings, semantics.logical_type(semantic), DEBEZIUM[semantic]
    )


@pytest.mark.parametrize("native", YDB)
def test_converters_of_ydb_agree(native: str) -> None:
    warnings: list[str] = []
    column = Column("c", types.logical_type(native), True, native)
    require_equal_texts(
        types.arrow_converter(column), types.converter(column, warnings.append), warnings, column.type, YDB[native]
    )
