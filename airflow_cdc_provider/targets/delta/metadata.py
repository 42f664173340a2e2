"""The metadata of a Delta table as actions of its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TableMetadata:
    """``protocol`` and ``metadata``: actions of the log."""

    protocol: dict[str, Any]
    metadata: dict[str, Any]


def metadata_of(delta_table: Any) -> TableMetadata:
    """``delta_table``: a ``deltalake.DeltaTable``."""
    protocol, metadata = delta_table.protocol(), delta_table.metadata()
    return TableMetadata(
        {
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            "readerFeatures": sorted(protocol.reader_features or ()),
            "writerFeatures": sorted(protocol.writer_features or ()),
        },
        {
            "id": metadata.id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": delta_table.schema().to_json(),
            "partitionColumns": list(metadata.partition_columns),
            "configuration": dict(metadata.configuration),
            "createdTime": metadata.created_time,
        },
    )
