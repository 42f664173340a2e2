"""Schemas of feeds, and their effect on rows without a message."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FEED = "tests/connectors/test_feed_alterations.py"

FEEDS = (
    Mutant(
        "a new column of a feed is NULL in older rows",
        "airflow_cdc_provider/connectors/decoders/debezium/schema_changes.py",
        "elif column.name in defaults or not column.nullable:",
        "elif column.name in ():",
        (FEED,),
    ),
    Mutant(
        "columns of a feed may change their positions",
        "airflow_cdc_provider/connectors/decoders/debezium/schema_changes.py",
        "for before, after in pairs if before != after]",
        "for before, after in pairs if before == '']",
        (FEED,),
    ),
    Mutant(
        "labels removed from a feed leave no value",
        "airflow_cdc_provider/connectors/decoders/debezium/schema_changes.py",
        "if new.labels and label not in new.labels]",
        "if new.labels and label not in old.labels]",
        (FEED,),
    ),
    Mutant(
        "a coarser time of a feed keeps every digit",
        "airflow_cdc_provider/connectors/decoders/debezium/schema_changes.py",
        "return _without_sizes(old) == _without_sizes(new)",
        "return old.type == new.type",
        (FEED,),
    ),
    Mutant(
        "the rows of a snapshot are checked like changes",
        "airflow_cdc_provider/connectors/decoders/debezium/table_layouts.py",
        "if start is not None and not in_snapshot:",
        "if start is not None:",
        (FEED,),
    ),
    Mutant(
        "a swap is checked again in every window",
        "airflow_cdc_provider/connectors/decoders/debezium/table_layouts.py",
        "if known and known.shape == schema.shape and not any(unlogged_changes(known.columns, columns)):",
        "if known and known.shape == schema.shape:",
        (FEED,),
    ),
    Mutant(
        "a column of a feed that comes back is the same",
        "airflow_cdc_provider/connectors/transports/messages/returning_columns.py",
        "if last > first and (names",
        "if last < first and (names",
        (FEED,),
    ),
    Mutant(
        "messages are compared with a copy that is paused",
        "airflow_cdc_provider/connectors/transports/messages/decoding.py",
        "task.schema, furthest.schema, tuple",
        "task.schema, task.control.schema, tuple",
        (FEED,),
    ),
    Mutant(
        "a topic without an id is always the same",
        "airflow_cdc_provider/connectors/transports/kafka/source.py",
        "return span if span.topic_id or first is None else",
        "return span if span or first is None else",
        ("tests/connectors/test_kafka_source.py",),
    ),
    Mutant(
        "messages removed by retention are those of another topic",
        "airflow_cdc_provider/connectors/transports/kafka/positions.py",
        "return int(found[1]) < int(known[1]) or",
        "return int(found[1]) != int(known[1]) or",
        ("tests/connectors/test_kafka_positions.py",),
    ),
    Mutant(
        "the first messages of a topic show all its tables",
        "airflow_cdc_provider/connectors/transports/kafka/topic_tables.py",
        "else own | self._shared",
        "else own",
        ("tests/connectors/test_kafka_topic_tables.py",),
    ),
    Mutant(
        "a topic with rows of another table contains only that of its name",
        "airflow_cdc_provider/connectors/transports/kafka/topic_tables.py",
        "return named if first <= named else frozenset()",
        "return named",
        ("tests/connectors/test_kafka_topic_tables.py",),
    ),
    Mutant(
        "every topic may contain every table",
        "airflow_cdc_provider/connectors/transports/kafka/topic_tables.py",
        "return own if any(not named.isdisjoint(names) for named in self._named.values()) else own | self._shared",
        "return own | self._shared",
        ("tests/connectors/test_kafka_topic_tables.py",),
    ),
    Mutant(
        "only tables of the first messages have lost messages",
        "airflow_cdc_provider/connectors/transports/kafka/source.py",
        "if topic in topic_tables.topics_of(of_table)",
        "if topic in topic_tables.own_topics_of(of_table)",
        ("tests/connectors/test_kafka_source.py",),
    ),
    Mutant(
        "a new snapshot contains every table that its topic may contain",
        "spark_jobs/windows/restarts.py",
        "elif not topic:\n            kind = EXPIRED",
        "elif not topic:\n            kind = RESTART",
        ("tests/connectors/test_kafka_restarts.py",),
    ),
    Mutant(
        "positions of two servers are compared",
        "spark_jobs/windows/changed_servers.py",
        "holes = [_hole(order, manifest) for _, order in sorted(back.items())]",
        "holes: list[Hole] = []",
        ("tests/core/test_server_orders.py",),
    ),
    Mutant(
        "changes that are sent again are those of another server",
        "airflow_cdc_provider/core/log/server_orders.py",
        "return known is None or found.number > known.number",
        "return True",
        ("tests/core/test_server_orders.py",),
    ),
    Mutant(
        "another server is found within one read only",
        "airflow_cdc_provider/core/log/server_orders.py",
        "for server, found in [*later.back.items(), *behind]",
        "for server, found in later.back.items()",
        ("tests/core/test_server_orders.py",),
    ),
    Mutant(
        "a new number of a known server cannot go back",
        "airflow_cdc_provider/core/log/server_orders.py",
        "if known is None or number > known.number:",
        "if known is None:",
        ("tests/core/test_server_orders.py",),
    ),
    Mutant(
        "a table that is copied again has the servers of before",
        "spark_jobs/windows/changed_servers.py",
        "if order.table not in with_hole",
        "if order.table or with_hole",
        ("tests/core/test_server_orders.py",),
    ),
    Mutant(
        "rows of an incremental snapshot have the order of changes",
        "airflow_cdc_provider/connectors/decoders/debezium/servers.py",
        'if snapshot_of(source, "") != "none" or',
        "if",
        ("tests/connectors/formats/test_debezium_servers.py",),
    ),
    Mutant(
        "a hole of another table hides a new column",
        "airflow_cdc_provider/connectors/sources/mysql/decode.py",
        "if BinlogPosition(file_number(event.file), event.end) >= self._limit:\n            self._add_new",
        "if BinlogPosition(file_number(event.file), event.end) > self._limit:\n            self._add_new",
        ("tests/connectors/test_mysql_altered_columns.py",),
    ),
)
