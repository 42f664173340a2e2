"""Thousands of values of one column as canonical JSON texts, equal to the results of the column's ``Converter``.

The result is None if a value is not a common one for its column: then the ``Converter`` is applied value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.decoders.common.times import EPOCH_DAY, FIRST_US, LAST_DAY, LAST_US
from airflow_cdc_provider.connectors.decoders.common.values import INTEGER_LIMITS
from airflow_cdc_provider.core.table.schema import Kind

if TYPE_CHECKING:
    from pyarrow import Array, StringArray

ArrowConverter = Callable[["Array"], "StringArray | None"]
"""NULL stays NULL."""

ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?Z$"
WHOLE_SECOND = ".000000"
TO_SECONDS = len("2024-05-06T07:08:09")


def converter_of_kind(kind: Kind) -> ArrowConverter | None:
    """For values whose JSON type matches the kind."""
    if kind in INTEGER_LIMITS:
        return integers(kind)
    return BY_KIND.get(kind)


def texts(values: Array) -> StringArray | None:
    import pyarrow as pa

    from airflow_cdc_provider.connectors.json_columns import strings

    return strings(values) if pa.types.is_string(values.type) else None


def booleans(values: Array) -> StringArray | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(values, "true", "false") if pa.types.is_boolean(values.type) else None


def floats(values: Array) -> StringArray | None:
    """None for a zero with a sign: in a key, it equals zero. Underflow must be excluded by the caller."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_float64(values.type):
        return None
    if pc.all(pc.is_finite(values)).as_py() is False:
        return None
    numbers = [None if number is None else repr(number) for number in values.to_pylist()]
    return None if "-0.0" in numbers else pa.array(numbers, pa.string())


BY_KIND: Mapping[Kind, ArrowConverter] = {
    Kind.BOOLEAN: booleans,
    Kind.FLOAT32: floats,
    Kind.FLOAT64: floats,
    Kind.TEXT: texts,
    Kind.JSON: texts,
}


def decimals(precision: int, scale: int) -> ArrowConverter:
    """Texts of numbers with exactly ``scale`` decimal places."""
    plain = rf"^-?(0|[1-9][0-9]{{0,{precision - scale - 1}}})" + (rf"\.[0-9]{{{scale}}}$" if scale else "$")

    def convert(values: Array) -> StringArray | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        from airflow_cdc_provider.connectors.json_columns import quoted

        if not pa.types.is_string(values.type) or precision <= scale:
            return None
        fits = pc.and_not(pc.match_substring_regex(values, plain), pc.match_substring_regex(values, "^-[0.]*$"))
        return quoted(values) if pc.all(fits).as_py() is not False else None

    return convert


def iso_timestamps(values: Array) -> StringArray | None:
    """Times in UTC with six decimal places or none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(values.type):
        return None
    if pc.all(pc.match_substring_regex(values, ISO)).as_py() is False:
        return None
    try:
        return timestamps(1, "Z")(values.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()))
    except pa.ArrowInvalid:  # an invalid day or time of day
        return None


def integers(kind: Kind) -> ArrowConverter:
    return integers_between(-INTEGER_LIMITS[kind], INTEGER_LIMITS[kind] - 1)


def integers_between(least: int, most: int, quotes: bool = False) -> ArrowConverter:
    def convert(values: Array) -> StringArray | None:
        from airflow_cdc_provider.connectors.json_columns import quoted

        if not _within(values, least, most):
            return None
        return quoted(values.cast("string")) if quotes else values.cast("string")

    return convert


def dates(values: Array) -> StringArray | None:
    """Dates as days since 1970."""
    from airflow_cdc_provider.connectors.json_columns import quoted

    if not _within(values, 1 - EPOCH_DAY, LAST_DAY - EPOCH_DAY):
        return None
    return quoted(values.cast("int32").cast("date32").cast("string"))


def timestamps(per_us: int, zone: str = "") -> ArrowConverter:
    """Times as numbers of units of ``per_us`` microseconds since 1970."""

    def convert(values: Array) -> StringArray | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        from airflow_cdc_provider.connectors.json_columns import quoted

        if not _within(values, -(-FIRST_US // per_us), LAST_US // per_us):
            return None
        texts = pc.multiply(values, per_us).cast(pa.timestamp("us")).cast("string")
        texts = pc.binary_replace_slice(texts, 10, 11, "T")
        seconds = pc.utf8_slice_codeunits(texts, 0, TO_SECONDS)
        return quoted(pc.if_else(pc.ends_with(texts, WHOLE_SECOND), seconds, texts), zone)

    return convert


def _within(values: Array, least: int, most: int) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_int64(values.type):
        return False
    ends = pc.min_max(values).as_py()
    return ends["min"] is None or (ends["min"] >= least and ends["max"] <= most)
