"""What each run asks of the server again: the facts that ``check`` reads, and that change what a copy gets without an
error of the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.sources.postgres.check_tables import key_problems, sent_problems
from airflow_cdc_provider.connectors.sources.postgres.table_facts import read_publication, read_table_facts
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem

if TYPE_CHECKING:
    from psycopg import Connection

LATER = "the change log has the changes until then; those that the server does not send are lost, and a resync follows"


def watched_problems(
    connection: Connection[Any], publication: str, tasks: Sequence[TableTask], location: str
) -> dict[str, Problem]:
    """The first problem of each table, by its name in the definition."""
    facts = read_table_facts(connection, publication, [task.name_in_source for task in tasks])
    sends = read_publication(connection, publication)
    found: dict[str, Problem] = {}
    for task in tasks:
        table = facts.get(task.name_in_source)
        if table is None or sends is None:
            continue  # other checks of the run report these
        problems = [*sent_problems(sends, publication, table, location), *key_problems(task, table)]
        if problems:
            found[task.source_table] = replace(problems[0], data=problems[0].data or LATER)
    return found
