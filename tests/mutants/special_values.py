"""Values of a source type that no target type has."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FORMATS = "airflow_cdc_provider/connectors/decoders/common"
POLLED = "airflow_cdc_provider/connectors/sources/jdbc_poll"
MESSAGES = ("tests/connectors/formats/test_unrepresentable.py",)
KEYS = ("tests/connectors/test_distinct_keys.py",)
TABLES = ("tests/connectors/test_jdbc_poll_unrepresentable.py",)
SCHEMAS = ("tests/core/test_special_values.py",)

SPECIAL_VALUES = (
    Mutant(
        "both infinite times of a feed have one text",
        f"{FORMATS}/times.py",
        '"infinity" if us > 0 else "-infinity"',
        '"infinity"',
        KEYS,
    ),
    Mutant(
        "years before and after the calendar have one text",
        f"{FORMATS}/far_times.py",
        "'-' if year < 0 else '+'",
        "'+'",
        MESSAGES,
    ),
    Mutant(
        "a time that is cast loses its digits below a microsecond",
        f"{FORMATS}/column_mapping.py",
        "if NANOSECONDS_CUT in warnings[count:]:",
        "if False:",
        MESSAGES,
    ),
    Mutant(
        "a value that is NULL in its column has no text beside it",
        f"{FORMATS}/column_mapping.py",
        "            return encode_basestring(error.text)\n        return NULL",
        "            return NULL\n        return NULL",
        MESSAGES,
    ),
    Mutant(
        "times of a polled table are those of the driver",
        f"{POLLED}/select.py",
        "if select is Select.TEXT or (kind in TIMES and self.system in EXACT_TEXT):",
        "if select is Select.TEXT:",
        TABLES,
    ),
    Mutant(
        "pages after a key that is cast follow the order of its texts",
        f"{POLLED}/select.py",
        "return sa.cast(sa.literal(str(value), sa.Text), self._type(name))",
        "return value",
        TABLES,
    ),
    Mutant(
        "check names columns that the definition casts",
        "airflow_cdc_provider/core/table/special_values.py",
        "NONE if schema.has_text_of(column.name) else IN_TYPE",
        "IN_TYPE",
        SCHEMAS,
    ),
)
