"""Finds reasons why a table cannot be replicated exactly. Pure: facts in, problems out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_cdc_provider.connectors.declared_keys import KEY_NOT_UNIQUE
from airflow_cdc_provider.connectors.row_filters import OPERAND
from airflow_cdc_provider.connectors.sources.postgres.publication import no_publication, no_table, quoted
from airflow_cdc_provider.connectors.sources.postgres.refused import GRANTS, refused_problems
from airflow_cdc_provider.connectors.sources.postgres.schemas import CatalogTable
from airflow_cdc_provider.connectors.sources.postgres.table_facts import ALL_OPERATIONS, PublicationFacts, TableFacts
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, of_table


def table_problems(
    tables: Sequence[TableTask],
    facts: Mapping[str, TableFacts],
    catalog: Mapping[str, CatalogTable],
    publication: PublicationFacts | None,
    publication_name: str,
    role: str,
    location: str,
) -> list[Problem]:
    missing = [task.table for task in tables if task.table not in facts]
    problems = [problem for table in missing for problem in of_table(table, [no_table(table, location)])]
    existing = [(task, facts[task.table]) for task in tables if task.table in facts]
    for task, table in existing:
        problems += of_table(task.table, _table_problems(task, table, catalog.get(task.table), role))
    copyable = [table for _, table in existing if table.kind in ("r", "p")]
    problems += _publication(publication, publication_name, copyable, location)
    return problems


def _table_problems(task: TableTask, table: TableFacts, described: CatalogTable | None, role: str) -> Iterator[Problem]:
    refused = list(refused_problems(task, table, described, role))
    yield from refused
    if all(problem.code in {*GRANTS, KEY_NOT_UNIQUE, OPERAND} for problem in refused):
        yield from _identity(task, table)


def _identity(task: TableTask, table: TableFacts) -> Iterator[Problem]:
    """The stream must contain the key of a changed row; for a row filter, or without a key, all its old values."""
    full = f"ALTER TABLE {table.sql} REPLICA IDENTITY FULL;"
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
            f"ALTER TABLE {table.sql} REPLICA IDENTITY DEFAULT;" if own else full,
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
        yield no_publication(name, [table.sql for table in tables if table.persistence == "p"], location)
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
            f"{alter} DROP TABLE {table.sql}; {alter} ADD TABLE {table.sql}; then resync it if it was copied",
        )
    elif not table.published and not (table.kind == "p" and not facts.via_root):
        yield Problem(
            "SRC008",
            f"{table.table} is not in publication {name}",
            table.table,
            "its changes are not sent",
            do=f"{alter} ADD TABLE {table.sql};",
        )


def _identity_name(table: TableFacts) -> str:
    return {"d": "default", "n": "nothing", "f": "full", "i": "index"}[table.identity]
