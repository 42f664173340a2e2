"""The keys of a source that reads Debezium's messages."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.spec.fields import doc


@dataclass(frozen=True)
class DebeziumOptions:
    registry: str = doc(
        "Airflow connection id of the schema registry, if messages contain ids of registered schemas (Avro, JSON "
        "Schema, Protobuf).",
        "",
        form="connection",
    )
    topic_prefix: str = doc("The connector's `topic.prefix`.", "")
    unwrapped: bool = doc("The connector applies `ExtractNewRecordState`: values are rows, not envelopes.", False)
    full_before: bool = doc(
        "Before images are complete: REPLICA IDENTITY FULL, or supplemental logging of all columns.",
        False,
    )
    unavailable_value: str = doc("The connector's `unavailable.value.placeholder`.", "__debezium_unavailable_value")
    time_precision: str = doc("The connector's `time.precision.mode`, for columns of the schema-change topic.", "")
    decimals: str = doc("The connector's `decimal.handling.mode`, likewise.", "precise")
    unsigned_bigints: str = doc("The connector's `bigint.unsigned.handling.mode`, likewise.", "long")
    blocking_snapshots: bool = doc(
        "Operators run blocking snapshots (MySQL, SQL Server, Oracle, MongoDB): a full snapshot after changes does not "
        "mean that the connector lost its offsets. Not required for PostgreSQL.",
        False,
    )
    binaries: str = doc("The connector's `binary.handling.mode`, likewise, and for declared columns.", "bytes")
