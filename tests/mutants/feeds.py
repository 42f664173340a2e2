"""Schemas of feeds, and what they say of rows that no message tells."""

from __future__ import annotations

from tests.mutants.breakage import Breakage

FEED = "tests/connectors/test_feed_alterations.py"

FEEDS = (
    Breakage(
        "a new column of a feed is NULL in older rows",
        "airflow_cdc_provider/connectors/decoders/debezium/schema_changes.py",
        "elif name in defaults or not column.nullable:",
        "elif name in ():",
        (FEED,),
    ),
    Breakage(
        "columns of a feed may change places",
        "airflow_cdc_provider/connectors/decoders/debezium/schema_changes.py",
        "for old_name, new_name in pairs if old_name != new_name]",
        "for old_name, new_name in pairs if old_name == '']",
        (FEED,),
    ),
    Breakage(
        "labels that went from a feed leave no value behind",
        "airflow_cdc_provider/connectors/decoders/debezium/schema_changes.py",
        "if new.labels and label not in new.labels]",
        "if new.labels and label not in old.labels]",
        (FEED,),
    ),
    Breakage(
        "a coarser time of a feed keeps every digit",
        "airflow_cdc_provider/connectors/decoders/debezium/schema_changes.py",
        "return _without_sizes(old) == _without_sizes(new)",
        "return old.type == new.type",
        (FEED,),
    ),
    Breakage(
        "the rows of a snapshot are judged like changes",
        "airflow_cdc_provider/connectors/decoders/debezium/table_layouts.py",
        "if copy_schema is not None and not in_snapshot:",
        "if copy_schema is not None:",
        (FEED,),
    ),
    Breakage(
        "a swap is judged again in every window",
        "airflow_cdc_provider/connectors/decoders/debezium/table_layouts.py",
        "if known and known.shape == schema.shape and not any(unlogged_changes(known.columns, columns)):",
        "if known and known.shape == schema.shape:",
        (FEED,),
    ),
    Breakage(
        "a column of a feed that comes back is the same",
        "airflow_cdc_provider/connectors/transports/messages/returning_columns.py",
        "if last > first and (names",
        "if last < first and (names",
        (FEED,),
    ),
    Breakage(
        "a hole of another table hides a new column",
        "airflow_cdc_provider/connectors/sources/mysql/decode.py",
        "if BinlogPosition(file_number(event.file), event.end) >= self._limit:\n            self._add_new",
        "if BinlogPosition(file_number(event.file), event.end) > self._limit:\n            self._add_new",
        ("tests/connectors/test_mysql_altered_columns.py",),
    ),
)
