"""Finds reasons why a table cannot be replicated exactly. Pure: facts in, problems out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_cdc_provider.connectors.declared_keys import declared_key_problem
from airflow_cdc_provider.connectors.row_filters import operand_problems
from airflow_cdc_provider.connectors.sources.postgres.publication import no_publication, no_table, quoted
from airflow_cdc_provider.connectors.sources.postgres.table_facts import ALL_OPERATIONS, PublicationFacts, TableFacts
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, of_table

KINDS = {"r": "ordinary table", "p": "partitioned table", "f": "foreign table", "v": "view", "m": "materialized view"}


def table_problems(
    tables: Sequence[TableTask],
    facts: Mapping[str, TableFacts],
    publication: PublicationFacts | None,
    publication_name: str,
    role: str,
    location: str,
) -> list[Problem]:
    missing = [task.table for task in tables if task.table not in facts]
    problems = [problem for table in missing for problem in of_table(table, [no_table(table, location)])]
    existing = [(task, facts[task.table]) for task in tables if task.table in facts]
    for task, table in existing:
        problems += of_table(task.table, _table_problems(task, table, role))
    copyable = [table for _, table in existing if table.kind in ("r", "p")]
    problems += _publication(publication, publication_name, copyable, location)
    return problems


def _table_problems(task: TableTask, table: TableFacts, role: str) -> Iterator[Problem]:
    kind = list(_kind(table))
    yield from kind
    yield from _grants(task, table, role)
    if not kind:
        yield from key_problems(task, table)
        yield from _identity(task, table)
        yield from operand_problems(task)


def _kind(table: TableFacts) -> Iterator[Problem]:
    if table.kind not in ("r", "p") or table.foreign_parts:
        yield Problem(
            "SRC017",
            f"changes of {table.table} are not in the WAL",
            table.table,
            f"foreign partitions {', '.join(table.foreign_parts)}" if table.foreign_parts else KINDS[table.kind],
            "ordinary and partitioned tables",
            "remove it from the definition, or copy its underlying tables",
        )
    elif table.persistence != "p":
        yield Problem(
            "SRC017",
            f"changes of {table.table} are not in the WAL",
            table.table,
            "an unlogged table" if table.persistence == "u" else "a temporary table",
            "logged tables",
            f"ALTER TABLE {_name(table)} SET LOGGED;" if table.persistence == "u" else "remove it from the definition",
        )
    elif table.partition:
        yield Problem(
            "SRC007",
            f"{table.table} is a partition",
            table.table,
            "a partition of another table",
            "the partitioned table as a whole",
            "name the partitioned table in the definition",
        )


def _grants(task: TableTask, table: TableFacts, role: str) -> Iterator[Problem]:
    if not table.may_enter:
        yield Problem(
            "SRC010",
            f"role {role} lacks USAGE on schema {table.namespace}",
            table.table,
            "no USAGE",
            do=f"GRANT USAGE ON SCHEMA {quoted(table.namespace)} TO {quoted(role)};",
        )
    if not table.may_select and not set(task.schema.names) <= set(table.readable):
        yield Problem(
            "SRC010",
            f"role {role} lacks SELECT on {table.table}",
            table.table,
            "no SELECT",
            do=f"GRANT SELECT ON TABLE {_name(table)} TO {quoted(role)};",
        )
    if table.hidden_rows:
        yield Problem(
            "SRC025",
            f"row security hides rows of {table.table} from role {role}",
            table.table,
            "policies apply to this role",
            "a role that sees every row",
            f"ALTER ROLE {quoted(role)} BYPASSRLS;",
        )


def key_problems(task: TableTask, table: TableFacts) -> Iterator[Problem]:
    columns = [quoted(name) for name in task.rule.key]
    fill = ", ".join(f"ALTER COLUMN {column} SET NOT NULL" for column in columns)
    index = f"CREATE UNIQUE INDEX ON {_name(table)} ({', '.join(columns)});"
    if problem := declared_key_problem(task, table.unique_keys, f"ALTER TABLE {_name(table)} {fill}; {index}"):
        yield problem


def _identity(task: TableTask, table: TableFacts) -> Iterator[Problem]:
    """The stream must contain the key of a changed row; for a row filter, or without a key, all its old values."""
    full = f"ALTER TABLE {_name(table)} REPLICA IDENTITY FULL;"
    known = table.identity_columns()
    key = task.schema.key
    if key and set(key) == set(table.deferrable_key) and table.identity != "f":
        yield Problem(
            "SRC016",
            f"the key of {table.table} is deferrable: within a transaction two rows may have the same key",
            table.table,
            f"({', '.join(key)}) DEFERRABLE, replica identity {_identity_name(table)}",
            "replica identity full, which distinguishes the two rows",
            full,
        )
    elif known is None:
        pass
    elif not key and table.deferrable_key:
        yield Problem(
            "SRC016",
            f"the key of {table.table} is deferrable and identifies no row, so the table is treated as keyless",
            table.table,
            f"({', '.join(table.deferrable_key)}) DEFERRABLE, replica identity {_identity_name(table)}",
            "a key that is not deferrable, or replica identity full",
            full,
        )
    elif not key or task.rule.where or not task.rule.snapshot.extent.is_whole:
        why = "has no key" if not key else "has a row filter" if task.rule.where else "is not copied as a whole"
        yield Problem(
            "SRC009",
            f"{table.table} {why}: the stream must contain all old values of a changed row",
            table.table,
            f"replica identity {_identity_name(table)}",
            "replica identity full",
            full,
        )
    elif not known.issuperset(key):
        own = table.identity == "n" and set(key) == set(table.primary_key)
        yield Problem(
            "SRC009",
            f"the stream does not contain the key of a changed row of {table.table}",
            table.table,
            f"replica identity {_identity_name(table)}: ({', '.join(sorted(known))})",
            f"a replica identity that contains the key ({', '.join(key)})",
            f"ALTER TABLE {_name(table)} REPLICA IDENTITY DEFAULT;" if own else full,
        )
    if table.mismatched_partitions:
        letter = {"f": "FULL", "d": "DEFAULT", "n": "NOTHING"}.get(table.identity, "USING INDEX …")
        yield Problem(
            "SRC009",
            f"partitions of {table.table} have another replica identity than the table",
            table.table,
            ", ".join(table.mismatched_partitions),
            f"replica identity {_identity_name(table)} on each partition",
            " ".join(f"ALTER TABLE {name} REPLICA IDENTITY {letter};" for name in table.mismatched_partitions),
        )


def _publication(
    facts: PublicationFacts | None, name: str, tables: Sequence[TableFacts], location: str
) -> Iterator[Problem]:
    alter = f"ALTER PUBLICATION {quoted(name)}"
    if facts is None:
        yield no_publication(name, [_name(table) for table in tables if table.persistence == "p"], location)
        return
    if facts.generated:
        yield Problem(
            "SRC005",
            f"publication {name} sends generated columns, which are not copied",
            location,
            "publish_generated_columns is on",
            do=f"{alter} SET (publish_generated_columns = none);",
        )
    yield from dict.fromkeys(problem for table in tables for problem in _settings(facts, name, table, location))
    for table in tables:
        yield from of_table(table.table, _membership(facts, name, table))


def sent_problems(facts: PublicationFacts, name: str, table: TableFacts, location: str) -> Iterator[Problem]:
    """What keeps changes of a table of the publication from the stream."""
    yield from _settings(facts, name, table, location)
    if table.narrowed:
        yield from _membership(facts, name, table)


def _settings(facts: PublicationFacts, name: str, table: TableFacts, location: str) -> Iterator[Problem]:
    alter = f"ALTER PUBLICATION {quoted(name)}"
    if not facts.all_operations:
        yield Problem(
            "SRC005",
            f"publication {name} does not publish all operations",
            location,
            f"publish = '{facts.operations}'",
            ALL_OPERATIONS,
            f"{alter} SET (publish = '{ALL_OPERATIONS}');",
        )
    if not facts.via_root and table.kind == "p":
        yield Problem(
            "SRC007",
            f"publication {name} publishes changes under the names of partitions instead of their table",
            location,
            "publish_via_partition_root = false",
            do=f"{alter} SET (publish_via_partition_root = true);",
        )


def _membership(facts: PublicationFacts, name: str, table: TableFacts) -> Iterator[Problem]:
    alter = f"ALTER PUBLICATION {quoted(name)}"
    if table.narrowed:
        yield Problem(
            "SRC006",
            f"publication {name} sends only some rows or columns of {table.table}",
            table.table,
            "a row filter or column list in the publication",
            "whole rows; the definition has `where` and `columns` for that",
            f"{alter} DROP TABLE {_name(table)}; {alter} ADD TABLE {_name(table)}; then resync it if it was copied",
        )
    elif not table.published and not (table.kind == "p" and not facts.via_root):
        yield Problem(
            "SRC008",
            f"{table.table} is not in publication {name}",
            table.table,
            "its changes are not sent",
            do=f"{alter} ADD TABLE {_name(table)};",
        )


def _name(table: TableFacts) -> str:
    return f"{quoted(table.namespace)}.{quoted(table.name)}"


def _identity_name(table: TableFacts) -> str:
    return {"d": "default", "n": "nothing", "f": "full", "i": "index"}[table.identity]
