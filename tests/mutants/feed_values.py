"""Values of feeds that no type explains."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DECODERS = "airflow_cdc_provider/connectors/decoders"
UNTYPED = f"{DECODERS}/common/untyped_values.py"
DECLARED = ("tests/connectors/formats/test_declared_types.py",)

FEED_VALUES = (
    Mutant(
        "a number in a text column is its digits, whatever it means",
        UNTYPED,
        'if is_number(value):\n            raise DecodeError(\n                NO_SCHEMA,\n                "a number',
        'if False:\n            raise DecodeError(\n                NO_SCHEMA,\n                "a number',
        DECLARED,
    ),
    Mutant(
        "any text is a document",
        UNTYPED,
        "if isinstance(value, str) and not is_json(value):",
        "if False:",
        DECLARED,
    ),
    Mutant(
        "a time in a column without a zone loses its zone",
        f"{DECODERS}/common/times.py",
        "if moment.utcoffset():",
        "if False:",
        DECLARED,
    ),
    Mutant(
        "a column that is cast and has no type of the source is read like others",
        f"{DECODERS}/common/column_mapping.py",
        "return lambda column: text if column.name in cast and source_type(column) is None else converter_of(column)",
        "return converter_of",
        DECLARED,
    ),
    Mutant(
        "a part of an object of Datastream is its value",
        f"{DECODERS}/datastream/values.py",
        "value.keys() != set(names)",
        "not value.keys() >= {names[0]}",
        DECLARED,
    ),
    Mutant(
        "bytes of Datastream without a type are base64",
        f"{DECODERS}/datastream/values.py",
        "return values.hex_binary if native == HEX else _undeclared_binary",
        "return values.hex_binary if native == HEX else values.binary",
        DECLARED,
    ),
    Mutant(
        "milliseconds of Datastream are microseconds",
        f"{DECODERS}/datastream/values.py",
        '"timestamp-millis": 1000',
        '"timestamp-millis": 1',
        DECLARED,
    ),
    Mutant(
        "a decimal of Debezium that may be base64 is the text of a number",
        f"{DECODERS}/debezium/undeclared.py",
        "(_is_base64(value) or not _is_number(value))",
        "not _is_number(value)",
        DECLARED,
    ),
    Mutant(
        "declared bytes of Debezium are always base64",
        f"{DECODERS}/debezium/undeclared.py",
        "return BINARIES.get(binaries, values.binary) if",
        "return values.binary if",
        DECLARED,
    ),
    Mutant(
        "a type of YDB that the column does not have explains its values",
        f"{DECODERS}/ydb/types.py",
        "return source_type(column) == column.type",
        "return True",
        DECLARED,
    ),
    Mutant(
        "a value of DynamoDB has any tag",
        f"{DECODERS}/ydb/dynamodb_json.py",
        "if tag not in TAGS_OF.get(column.type.kind, NUMBERS):",
        "if False:",
        DECLARED,
    ),
)
