"""Values of one column, thousands at once, as canonical JSON texts: the same as their converter says one by one.

None where one of the values is not what such a column mostly holds: then the converter has to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.decoders.common.times import EPOCH_DAY, FIRST_US, LAST_DAY, LAST_US
from airflow_cdc_provider.connectors.decoders.common.values import LARGEST
from airflow_cdc_provider.core.table.schema import Kind

if TYPE_CHECKING:
    from pyarrow import Array, StringArray

Quick = Callable[["Array"], "StringArray | None"]
"""NULL stays NULL."""

ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?Z$"
WHOLE_SECOND = ".000000"
TO_SECONDS = len("2024-05-06T07:08:09")


def of_kind(kind: Kind) -> Quick | None:
    """For values that mean what they look like."""
    if kind in LARGEST:
        return integers(kind)
    return OTHERS.get(kind)


def texts(values: Array) -> StringArray | None:
    import pyarrow as pa

    from airflow_cdc_provider.connectors.json_columns import strings

    return strings(values) if pa.types.is_string(values.type) else None


def booleans(values: Array) -> StringArray | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(values, "true", "false") if pa.types.is_boolean(values.type) else None


def floats(values: Array) -> StringArray | None:
    """A number too small for a float looks like zero by now; a negative zero is not the same in a key."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_float64(values.type):
        return None
    if pc.all(pc.is_finite(values)).as_py() is False:
        return None
    told = [None if one is None else repr(one) for one in values.to_pylist()]
    return None if "-0.0" in told else pa.array(told, pa.string())


OTHERS: Mapping[Kind, Quick] = {
    Kind.BOOLEAN: booleans,
    Kind.FLOAT32: floats,
    Kind.FLOAT64: floats,
    Kind.TEXT: texts,
    Kind.JSON: texts,
}


def decimals(precision: int, scale: int) -> Quick:
    """Texts of numbers that have all their digits."""
    plain = rf"^-?(0|[1-9][0-9]{{0,{precision - scale - 1}}})" + (rf"\.[0-9]{{{scale}}}$" if scale else "$")

    def told(values: Array) -> StringArray | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        from airflow_cdc_provider.connectors.json_columns import quoted

        if not pa.types.is_string(values.type) or precision <= scale:
            return None
        fits = pc.and_not(pc.match_substring_regex(values, plain), pc.match_substring_regex(values, "^-[0.]*$"))
        return quoted(values) if pc.all(fits).as_py() is not False else None

    return told


def iso_moments(values: Array) -> StringArray | None:
    """Times in UTC with six digits behind the point, or none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(values.type):
        return None
    if pc.all(pc.match_substring_regex(values, ISO)).as_py() is False:
        return None
    try:
        return moments(1, "Z")(values.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()))
    except pa.ArrowInvalid:  # no day or hour of a clock
        return None


def integers(kind: Kind) -> Quick:
    return whole(-LARGEST[kind], LARGEST[kind] - 1)


def whole(least: int, most: int, quotes: bool = False) -> Quick:
    def told(values: Array) -> StringArray | None:
        from airflow_cdc_provider.connectors.json_columns import quoted

        if not _within(values, least, most):
            return None
        return quoted(values.cast("string")) if quotes else values.cast("string")

    return told


def days(values: Array) -> StringArray | None:
    """Dates as days since 1970."""
    from airflow_cdc_provider.connectors.json_columns import quoted

    if not _within(values, 1 - EPOCH_DAY, LAST_DAY - EPOCH_DAY):
        return None
    return quoted(values.cast("int32").cast("date32").cast("string"))


def moments(per_us: int, zone: str = "") -> Quick:
    """Times as numbers of ``per_us`` microseconds since 1970."""

    def told(values: Array) -> StringArray | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        from airflow_cdc_provider.connectors.json_columns import quoted

        if not _within(values, -(-FIRST_US // per_us), LAST_US // per_us):
            return None
        found = pc.multiply(values, per_us).cast(pa.timestamp("us")).cast("string")
        found = pc.binary_replace_slice(found, 10, 11, "T")
        whole = pc.utf8_slice_codeunits(found, 0, TO_SECONDS)
        return quoted(pc.if_else(pc.ends_with(found, WHOLE_SECOND), whole, found), zone)

    return told


def _within(values: Array, least: int, most: int) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_int64(values.type):
        return False
    ends = pc.min_max(values).as_py()
    return ends["min"] is None or (ends["min"] >= least and ends["max"] <= most)
