"""Tables that have another name in the source than their copies. Pure.

Such a table keeps the name of its copy in the YAML, in the change log and in the target.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from airflow_cdc_provider.core.decisions.operator_decisions import OperatorDecision, answer_to
from airflow_cdc_provider.core.spec.definition import Definition, TableRule
from airflow_cdc_provider.core.spec.schema_policy import OnChange
from airflow_cdc_provider.core.spec.selection import rule_of
from airflow_cdc_provider.core.table.control_record import ControlRecord, behind
from airflow_cdc_provider.core.table.copies import HISTORY, source_table
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.questions import Answer, Question, question_id
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import WITHOUT_COPY


def may_be_renamed(
    definition: Definition, listed: Collection[str], rows: Mapping[str, TableRow]
) -> dict[str, TableIdentity | None]:
    """The copied tables that the source does not list under their name, and whose renames are followed, with the
    identity that the copy which has followed its table furthest has."""
    found: dict[str, TableIdentity | None] = {}
    for copy, row in sorted(rows.items(), key=lambda one: behind(one[1].state, one[1].control)):
        table, identity = source_table(copy), row.control.identity if row.control else None
        rule = rule_of(definition.tables, table)
        if (
            rule
            and not copy.endswith(HISTORY)
            and table not in listed
            and row.state not in WITHOUT_COPY
            and _follows(definition, rule)
        ):
            found.setdefault(table, identity)
    return found


def _follows(definition: Definition, rule: TableRule) -> bool:
    return rename_policy(definition, rule) is not OnChange.STOP


def rename_policy(definition: Definition, rule: TableRule) -> OnChange:
    return OnChange(rule.schema_changes.over(definition.schema_changes).of(ChangeKind.RENAME))


def under_copied_names(
    described: Iterable[TableSchema], renamed: Mapping[str, str], rows: Mapping[str, TableRow]
) -> tuple[list[TableSchema], dict[str, str]]:
    """The tables of the source by the names of their copies, and the renames among them. ``renamed``: name of the copy
    → name now. A table that has a copy under its new name, too, is not followed."""
    copied = {source_table(copy) for copy, row in rows.items() if row.state not in WITHOUT_COPY}
    former = {name: table for table, name in renamed.items() if name not in copied}
    schemas = [replace(schema, table=former.get(schema.table, schema.table)) for schema in described]
    return schemas, {table: name for name, table in former.items()}


def rename_question(control: ControlRecord, name: str) -> Question:
    number = question_id(control.table, control.floor, 0, control.table, name)
    changes = (f"the table was renamed to {name}",)
    return Question(number, control.table, control.window, changes, (Answer.APPLY, Answer.LEAVE))


def is_followed(control: ControlRecord, name: str, decisions: Sequence[OperatorDecision]) -> bool:
    """Whether the table needs no decision of an operator: one has decided that it is the same, or its rows were copied
    under that name."""
    if control.name_in_source == name:
        return True
    decision = answer_to(decisions, rename_question(control, name).id)
    return decision is not None and decision.answer is Answer.APPLY
