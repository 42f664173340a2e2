"""What becomes of tables that the source lists for the first time, or no longer. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision, answer_to
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.copies import rule_of_copy
from airflow_cdc_provider.core.spec.definition import Definition, TableRule
from airflow_cdc_provider.core.spec.other_kinds import OtherKind, not_copied
from airflow_cdc_provider.core.spec.selection import Selection, is_pattern, rule_of
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable, OnNewTable
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.questions import Answer, Question, question_id
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState

GONE = "TBL004"
NOT_DROPPED = "RUN002"

GRANTED_AGAIN = (
    "grant it again: the next run continues the copy, or asks for a resync if a run has read changes without the table"
)
"""Windows that were read while the source did not list a table lack its changes."""


@dataclass(frozen=True)
class NewTable:
    """A table that is not copied. ``question``: what it waits for; None if the policy or an operator has decided.
    ``remedy``: what else copies it."""

    table: str
    target: str
    reason: str
    question: Question | None = None
    remedy: str = "name the table in the YAML to copy it"


@dataclass(frozen=True)
class GoneTable:
    """A table that was copied, and that the source no longer lists. ``rule``: the name or pattern that selects it.
    ``outcome``: what has become of the copy that was to be dropped; ``left``: why it is still there."""

    table: str
    target: str
    rule: str
    policy: OnDroppedTable
    outcome: str = ""
    left: Problem | None = None


def on_new_table(definition: Definition, rule: TableRule) -> OnNewTable:
    return rule.new_tables or definition.new_tables


def on_dropped_table(definition: Definition, rule: TableRule) -> OnDroppedTable:
    """A table that the YAML names is expected to exist."""
    default = OnDroppedTable.KEEP if is_pattern(rule.source) else OnDroppedTable.STOP
    return rule.dropped_tables or definition.dropped_tables or default


def separate_new_tables(
    definition: Definition,
    selections: Iterable[Selection],
    known: Collection[str],
    decisions: Iterable[OperatorDecision],
    identities: Mapping[str, TableIdentity],
) -> tuple[tuple[Selection, ...], tuple[NewTable, ...]]:
    """The tables to copy, and those that are not copied. ``known``: the tables of earlier runs. ``identities``: of
    tables, where the source has them: another table of a name is another question. A table that the YAML names is
    always copied. A table with several copies is reported once, under the name of the first of them."""
    decisions = tuple(decisions)
    copied, excluded = list[Selection](), dict[str, NewTable]()
    for selection in selections:
        new = is_pattern(selection.rule.source) and selection.source_table not in known
        table = identities[selection.source_table].table_id if selection.source_table in identities else ""
        reason, question = _why_not_copied(definition, selection, decisions, table) if new else ("", None)
        if reason:
            excluded.setdefault(selection.source_table, NewTable(selection.table, selection.target, reason, question))
        else:
            copied.append(selection)
    return tuple(copied), tuple(excluded.values())


def _why_not_copied(
    definition: Definition, selection: Selection, decisions: Iterable[OperatorDecision], identity: str
) -> tuple[str, Question | None]:
    """An empty reason: it is copied."""
    policy = on_new_table(definition, selection.rule)
    if policy is OnNewTable.COPY:
        return "", None
    if policy is OnNewTable.IGNORE:
        return f"a new table; `new_tables: ignore` applies to `{selection.rule.source}`", None
    question = _question(selection, identity)
    decision = answer_to(decisions, question.id)
    if decision is None or decision.answer is Answer.LEAVE:
        return "a new table waits for an operator's answer", question
    if decision.answer is Answer.APPLY:
        return "", None
    return f"a new table; {decision.decided_by} decided at {decision.decided_at} not to copy it", None


def _question(selection: Selection, identity: str) -> Question:
    columns = ", ".join(f"{column.name} {column.type}" for column in selection.selected.columns)
    change = f"the source has a new table, selected by {selection.rule.source}: {columns}"
    number = question_id(selection.source_table, "", 0, identity, "new table")
    return Question(number, selection.table, 0, (change,), (Answer.APPLY, Answer.IGNORE, Answer.LEAVE))


def was_copied(row: TableRow) -> bool:
    """Whether the table has, or had, a copy or its beginning. One that was dropped without a copy is new when it comes
    back."""
    return row.state is not TableState.NEW and not (row.state is TableState.DROPPED and row.control is None)


def gone_tables(definition: Definition, listed: Collection[str], rows: Mapping[str, TableRow]) -> tuple[GoneTable, ...]:
    """The tables with a copy that the definition selects and the source does not list."""
    gone = []
    for table, row in rows.items():
        if source_table(table) in listed or row.state in (TableState.DROPPED, TableState.NEW):
            continue
        if rule := rule_that_selects(definition, table):
            gone.append(GoneTable(table, row.target, rule.source, on_dropped_table(definition, rule)))
    return tuple(gone)


def rule_that_selects(definition: Definition, copy: str) -> TableRule | None:
    """The rule of the table, if it has this copy."""
    rule = rule_of(definition.tables, source_table(copy))
    has_copy = rule and rule_of_copy(rule, source_table(copy), definition.target_names, copy)
    return rule if has_copy else None


def settled_drops(
    definition: Definition, rows: Mapping[str, TableRow], decisions: Iterable[OperatorDecision]
) -> frozenset[str]:
    """Tables of the source whose drop an earlier run has settled, and which the policy does not block now. The decision
    to drop the copy is left of a row that was lost."""
    dropped = {source_table(table) for table, row in rows.items() if row.state is TableState.DROPPED}
    decided = {source_table(one.table) for one in decisions if one.kind is DecisionKind.DROP_COPY}
    dropped |= decided - {source_table(table) for table in rows}
    rules = {table: rule_of(definition.tables, table) for table in dropped}
    return frozenset(
        table for table, rule in rules.items() if rule and on_dropped_table(definition, rule) is not OnDroppedTable.STOP
    )


def gone_problem(gone: GoneTable, is_dropped: bool | None, other: OtherKind | None = None) -> Problem | None:
    """Why the table is blocked. ``is_dropped``: what the source says of it; None if it cannot say. A copy is only
    dropped if the source has certainly dropped the table: a table without access looks the same in its list.
    ``other``: what has its name now."""
    if other:
        data = f"the copy {gone.target} is unchanged"
        return replace(not_copied(gone.table, other), code=GONE, data=data)
    if gone.policy is OnDroppedTable.KEEP or (gone.policy is OnDroppedTable.DROP and is_dropped):
        return None
    found = {
        True: "it does not exist",
        False: "it exists, perhaps under another name",
        None: "it was dropped, or access was revoked",
    }
    return Problem(
        GONE,
        f"the source no longer lists {gone.table}",
        where=gone.table,
        found=found[is_dropped],
        allowed="a table that the source lists",
        do=f"if access was revoked, {GRANTED_AGAIN}; or remove it from `tables`, or set `dropped_tables: keep`",
        data=f"the copy {gone.target} is unchanged",
    )


def not_dropped(copy: str, target_table: str, found: str) -> Problem:
    """``found``: why its drop did not succeed."""
    return Problem(
        NOT_DROPPED,
        f"the copy of {copy}, which the source dropped, is not dropped yet",
        where=target_table,
        found=found,
        do="nothing, if the target did not answer: the next run drops it; else remove what prevents it",
        table=source_table(copy),
    )


def kept_in_part(copy: str, target_table: str, found: str) -> Problem:
    """Of a copy that is kept after its drop has begun. ``found``: what shows that parts may be gone."""
    return Problem(
        NOT_DROPPED,
        f"the copy of {copy} is to be kept, but its drop has begun: it may be dropped in part",
        where=target_table,
        found=found,
        do="set `dropped_tables: drop` again, or remove what is left of it; then a run copies the table anew once the "
        "source has it again",
        table=source_table(copy),
    )
