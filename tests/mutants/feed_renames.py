"""Renamed columns and tables, by the statements of a schema-change topic and by the ids of columns."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DEBEZIUM = "airflow_cdc_provider/connectors/decoders/debezium"
MESSAGES = "airflow_cdc_provider/connectors/transports/messages"
HISTORY = "tests/connectors/formats/test_table_history.py"
COLUMNS = "tests/connectors/test_feed_renames.py"
TOPICS = "tests/connectors/test_kafka_renames.py"
LOST = "tests/spark/pipelines/feeds/test_renamed_feed.py"
IDS = "tests/core/test_column_ids.py"

FEED_RENAMES = (
    Mutant(
        "a column gets the id of the one that had its name before",
        "airflow_cdc_provider/core/table/column_ids.py",
        "if not column.id and column.name in ids else column",
        "if not column.id and column.name in () else column",
        (IDS,),
    ),
    Mutant(
        "a column is matched by the former name of another one",
        "airflow_cdc_provider/core/table/schema_changes.py",
        "for column in old if column.id or column.name not in ids}",
        "for column in old}",
        (IDS,),
    ),
    Mutant(
        "two columns become one",
        "airflow_cdc_provider/core/table/schema_changes.py",
        " and not (column.id and after.id) and after.id not in identities:",
        " and not (column.id and after.id):",
        (IDS,),
    ),
    Mutant(
        "statements that a restarted connector repeats count twice",
        f"{DEBEZIUM}/statements.py",
        "found.setdefault(place, list(_statements(payload)))",
        "found.setdefault((len(found), *place), list(_statements(payload)))",
        (HISTORY,),
    ),
    Mutant(
        "a table is taken to have been in its new database before",
        f"{DEBEZIUM}/statements.py",
        "if not database and new_database:",
        "if not name:",
        (HISTORY, "tests/connectors/formats/test_recorded_debezium.py"),
    ),
    Mutant(
        "missing statements are overlooked",
        f"{DEBEZIUM}/table_history.py",
        "if versions and before and lower_case(versions[-1].columns) != lower_case(before[0].columns):",
        "if versions and not before and statement.previous:",
        (HISTORY,),
    ),
    Mutant(
        "nothing precedes the first statement that is known",
        f"{DEBEZIUM}/table_history.py",
        "(*(versions or before), version)",
        "(*versions, version)",
        (HISTORY,),
    ),
    Mutant(
        "a name that another table has got leads to the former one",
        f"{DEBEZIUM}/table_history.py",
        "if any(_has_since(others, name, history.left(name)) for name in former):",
        "if not others and not former:",
        (HISTORY,),
    ),
    Mutant(
        "one of several possible columns is chosen",
        f"{DEBEZIUM}/columns_by_history.py",
        "return found[0] if len(found) == 1 else None",
        "return found[0] if found else None",
        (HISTORY,),
    ),
    Mutant(
        "a column that is dropped and added again by one statement is the same",
        f"{DEBEZIUM}/columns_by_history.py",
        "replaced = lower_case(statement.added) & lower_case(statement.dropped)",
        "replaced = frozenset[str]()",
        (HISTORY,),
    ),
    Mutant(
        "a column that was not copied has the values of the copy",
        f"{DEBEZIUM}/column_identities.py",
        "for new, old in found.uncopied.items()",
        "for new, old in {}.items()",
        (COLUMNS,),
    ),
    Mutant(
        "a renamed column of the key leaves it",
        f"{DEBEZIUM}/column_identities.py",
        "return tuple(name if name in names else present.get(name, name) for name in key)",
        "return tuple(name for name in key if name in names or present)",
        (COLUMNS,),
    ),
    Mutant(
        "a described table loses the ids of its columns",
        f"{DEBEZIUM}/table_layouts.py",
        "schema = with_ids_of(known, schema)",
        "schema = known",
        (COLUMNS,),
    ),
    Mutant(
        "the first window of a table has no unlogged changes",
        f"{DEBEZIUM}/table_layouts.py",
        "start = copy_schema or self._settings.schema(table)",
        "start = copy_schema",
        ("tests/connectors/test_feed_alterations.py",),
    ),
    Mutant(
        "the columns of a first copy are those of the partition that is read first",
        f"{MESSAGES}/discovery.py",
        "and key < first_keys.get(record.table, LAST):",
        "and record.table not in first_keys:",
        ("tests/connectors/test_feed_alterations.py",),
    ),
    Mutant(
        "a statement among the messages adds columns",
        f"{DEBEZIUM}/control_messages.py",
        'record.after = canonical({"kind": "schema", **schema.plain()})',
        'record.after, record.schema_id = canonical({"kind": "schema", **schema.plain()}), schema.schema_id',
        (COLUMNS,),
    ),
    Mutant(
        "a topic with rows of an earlier table belongs to the renamed one",
        f"{MESSAGES}/feed_source.py",
        "and all(first.get(name, since) >= since for name, since in one.since.items())",
        "and one.since",
        (TOPICS,),
    ),
    Mutant(
        "the former topic of a renamed table is not read to its end",
        f"{MESSAGES}/feed_source.py",
        "return frozenset({table, now, *self.former_names(now)})",
        "return frozenset({table, now})",
        (TOPICS,),
    ),
    Mutant(
        "what is lost of a renamed table is a hole of no copy",
        "airflow_cdc_provider/connectors/transports/kafka/source.py",
        "self.names_of(task.name_in_source) for task in tables}",
        "frozenset({task.table}) for task in tables}",
        (TOPICS,),
    ),
    Mutant(
        "the topic of a new name is read before the former one",
        "airflow_cdc_provider/connectors/transports/kafka/topic_status.py",
        "waiting = {topic for topic, names in former.items() if not unread.isdisjoint(names)}",
        "waiting = set[str]()",
        ("tests/connectors/test_kafka_positions.py",),
    ),
    Mutant(
        "lost first messages of a new name are those of a table without a copy",
        "airflow_cdc_provider/connectors/transports/kafka/topic_status.py",
        "known_topics.isdisjoint({channel.topic, *former.get(channel.topic, ())})",
        "known_topics.isdisjoint({channel.topic})",
        ("tests/connectors/test_kafka_positions.py",),
    ),
    Mutant(
        "a renamed table is forgotten with its statement",
        f"{MESSAGES}/feed_source.py",
        "name = known.name if known else table",
        "name = table",
        (LOST,),
    ),
    Mutant(
        "rows of another table with the former name reach the copy",
        f"{MESSAGES}/decoding.py",
        'others = {task.table: "" for task in tasks if task.table not in names}',
        'others = {task.table: "" for task in tasks if task.table == ""}',
        (LOST,),
    ),
)
