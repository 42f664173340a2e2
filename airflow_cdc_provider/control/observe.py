"""Reads the facts for a decision from source, target, staging and state store. Writes nothing.

The source is read first. If it has no changes and no command is pending, settled tables that their target still lists
are taken from the index, so that an idle run costs nearly the same for one table as for hundreds. All others are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from airflow_cdc_provider.connectors.source_features import (
    AnnouncesColumns,
    HasFormerNames,
    HasIdentities,
    StreamHoldsSnapshots,
)
from airflow_cdc_provider.control.column_comments import with_comments
from airflow_cdc_provider.control.disclosed_columns import Disclosed, find_disclosed
from airflow_cdc_provider.control.first_copies import blocked_copies, paused_copies
from airflow_cdc_provider.control.list_tables import list_tables
from airflow_cdc_provider.control.refused_copies import refused_copies
from airflow_cdc_provider.control.refused_tables import of_readable_tables, with_filtered_logs, with_refusals
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.settled_tables import present_tables, settled_tables
from airflow_cdc_provider.core.columns.copied import source_schema
from airflow_cdc_provider.core.columns.functions import hash_key_id
from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.decisions.facts import Facts, LogFacts, StreamFacts, TableFacts
from airflow_cdc_provider.core.decisions.operator_decisions import answer_to
from airflow_cdc_provider.core.decisions.pending_resyncs import pending_resyncs
from airflow_cdc_provider.core.decisions.renamed_tables import is_followed, rename_policy
from airflow_cdc_provider.core.decisions.run_beside import RunBeside
from airflow_cdc_provider.core.decisions.run_plan import Mode
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import (
    UNREADABLE,
    CheckFailed,
    IdentityChanged,
    PositionLost,
    Retryable,
    SourceUnavailable,
    SourceUnreachable,
)
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.proof.schedule import DueComparison, due_comparison
from airflow_cdc_provider.core.spec.schema_policy import OnChange
from airflow_cdc_provider.core.spec.selection import Selection
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.identity import TableIdentity, unlogged_changes
from airflow_cdc_provider.core.table.ignored_columns import still_ignored
from airflow_cdc_provider.core.table.state_rows import Claim, Lane, TableRow
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, State, TableState
from airflow_cdc_provider.core.times import utc_text
from airflow_cdc_provider.targets.target import TargetState

READERS = 8
NEVER_COPIED = frozenset({TableState.PENDING, TableState.SNAPSHOTTING, TableState.DROPPED})


@dataclass(frozen=True)
class RunContext:
    """The run that the facts are for. ``interval`` is set for a backfill. ``beside``: the run that has the stream
    lane, if it is another one. ``dag_version`` is set if the DAG's bundle has versions: the id of that with which
    Airflow created the run."""

    run_id: str
    mode: Mode = Mode.STREAM
    interval: tuple[str, str] | None = None
    stream_lane: bool = True
    copy_lane: bool = True
    beside: RunBeside | None = None
    dag_version: str = ""


@dataclass(frozen=True)
class Observation:
    """``states``: the tables that were read from the target. A fence is conditional on exactly this state.
    ``disclosed``: to be written before anything is copied."""

    facts: Facts
    states: dict[str, TargetState]
    disclosed: Disclosed


def observe(replicator: Replicator, run: RunContext, use_index: bool = True) -> Observation:
    """``use_index``: settled tables may be taken from the index. Raises SourceUnavailable or StagingUnavailable if a
    retry can help, StagingInvalid if the log is damaged. A target table that cannot be read fails alone.

    If another run removes windows meanwhile, the cursors may not fit the log that was read after them, and everything
    is read again."""
    while True:
        oldest = replicator.log.oldest()
        observation = _observe(replicator, run, use_index)
        if replicator.log.oldest() == oldest:
            return observation


def _observe(replicator: Replicator, run: RunContext, use_index: bool) -> Observation:
    log, state, name = replicator.log, replicator.state, replicator.name
    rows, commands, claims = state.tables(name), state.pending(name), state.claims(name)
    listed = list_tables(replicator, rows)
    selections, renamed = listed.selections, listed.renamed
    sealed = log.sealed()
    last = log.manifest(sealed) if sealed else None
    at = state.now()
    stream = _stream_facts(replicator, last, [selection.source_table for selection in selections], renamed)
    selected = {selection.table for selection in selections}
    due = _due_comparisons(replicator, {copy: row for copy, row in rows.items() if copy in selected}, at)
    idle = use_index and not (stream.has_changes or commands or run.interval or due)
    paused = paused_copies(replicator, [selection.table for selection in selections])
    settled = settled_tables(rows, claims, sealed, at) - paused.keys() if idle else set()
    settled = present_tables(replicator.targets, selections, settled)

    to_read = [selection for selection in selections if selection.table not in settled]
    with ThreadPoolExecutor(READERS) as pool:
        read = dict(
            zip((s.table for s in to_read), pool.map(lambda s: _target_state(replicator, s), to_read), strict=True)
        )
    copied_by = _copied_by_live_runs(replicator, claims, run.run_id)
    disclosed = find_disclosed(replicator, selections, _controls(selections, read, rows))
    tables = tuple(
        _table_facts(
            s,
            read.get(s.table),
            rows.get(s.table),
            copied_by.get(s.table, ""),
            commands,
            renamed.get(s.source_table, ""),
            disclosed.columns.get(s.source_table),
        )
        for s in selections
    )
    tables = tuple(replace(table, due=due.get(table.task.table)) for table in tables) if due else tables
    tables = _with_renames(replicator, tables) if renamed else tables
    tables = with_refusals(replicator, tables, refused_copies(replicator.targets, tables, read))
    tables = with_filtered_logs(replicator, tables, last)
    stream = of_readable_tables(replicator, stream, tables)
    tables = _with_former_names(replicator, tables)
    tables = _with_first_copies(replicator, tables, paused)
    tables = _with_window_beside(tables, run.beside) if run.beside else tables
    states = {table: result for table, result in read.items() if isinstance(result, TargetState)}
    log_facts = _log_facts(replicator, last, tables, rows, whole_log=run.interval is not None)
    if stream.lost is None:
        tables = _with_identities(replicator, tables, log_facts)
    tables = with_comments(replicator, tables)

    facts = Facts(
        definition=replicator.definition,
        run_id=run.run_id,
        mode=run.mode,
        at=at,
        owner=state.owner(),
        source_identity=replicator.source.identity(),
        log=log_facts,
        stream=stream,
        tables=tables,
        unselected=listed.problems,
        new=listed.new,
        gone=listed.gone,
        commands=commands,
        hash_key_id=hash_key_id(replicator.hash_key),
        stream_lane=run.stream_lane,
        copy_lane=run.copy_lane,
        interval=run.interval,
    )
    return Observation(facts, states, disclosed)


def _controls(
    selections: Iterable[Selection],
    read: Mapping[str, TargetState | Retryable | CheckFailed],
    rows: Mapping[str, TableRow],
) -> dict[str, ControlRecord | None]:
    """From the target, as far as it was read, else from the index."""
    known = {table: row.control for table, row in rows.items()}
    return {
        one.table: state.control if isinstance(state := read.get(one.table), TargetState) else known.get(one.table)
        for one in selections
    }


def _due_comparisons(replicator: Replicator, rows: Mapping[str, TableRow], at: str) -> dict[str, DueComparison]:
    """The comparisons that are due now, without a command. A source that delivers changes only has no rows."""
    if isinstance(replicator.source, StreamHoldsSnapshots):
        return {}
    verify, asked = replicator.definition.verify, any(row.verified and row.verified.question for row in rows.values())
    decisions = replicator.log.decisions() if asked else []
    due = {}
    for table, row in rows.items():
        question = row.verified.question if row.verified else None
        decision = answer_to(decisions, question.id) if question else None
        if found := due_comparison(verify, row, decision.answer if decision else None, at):
            due[table] = found
    return due


def _with_renames(replicator: Replicator, tables: tuple[TableFacts, ...]) -> tuple[TableFacts, ...]:
    decisions = replicator.log.decisions()

    def waits(task: TableTask) -> bool:
        if not task.renamed_to or task.control is None:
            return False
        asks = rename_policy(replicator.definition, task.rule) is OnChange.ASK
        return asks and not is_followed(task.control, task.renamed_to, decisions)

    return tuple(replace(table, renamed=waits(table.task)) for table in tables)


def _with_first_copies(
    replicator: Replicator, tables: tuple[TableFacts, ...], paused: dict[str, State]
) -> tuple[TableFacts, ...]:
    without = {table.task.table: table.task for table in tables if table.task.control is None}
    blocked = blocked_copies(replicator, without)
    stopped = {name: copy.state for name, copy in blocked.items() if copy.blocks(without[name])} | paused
    return tuple(replace(table, first_copy=stopped.get(table.task.table)) for table in tables)


def _with_window_beside(tables: tuple[TableFacts, ...], beside: RunBeside) -> tuple[TableFacts, ...]:
    return tuple(replace(table, missed_by=beside.run_id) if beside.misses(table.task) else table for table in tables)


def _with_former_names(replicator: Replicator, tables: tuple[TableFacts, ...]) -> tuple[TableFacts, ...]:
    source = replicator.source
    if not isinstance(source, HasFormerNames):
        return tables
    tasks = (replace(table.task, former_names=source.former_names(table.task.name_in_source)) for table in tables)
    return tuple(replace(table, task=task) for table, task in zip(tables, tasks, strict=True))


def _stream_facts(
    replicator: Replicator, last: Manifest | None, tables: Sequence[str], renamed: Mapping[str, str]
) -> StreamFacts:
    if last is None:
        return StreamFacts()
    names = {renamed.get(table, table): table for table in tables}
    try:
        status = replicator.source.status(last.hi, list(names))
    except (PositionLost, IdentityChanged) as error:
        return StreamFacts(lost=error.problems[0])
    outside = {names[name]: problem for name, problem in status.outside.items()}
    at = utc_text(status.at) if status.at else ""
    return StreamFacts(status.has_changes, status.limit, status.idle, outside=outside, at=at)


def _with_identities(replicator: Replicator, tables: tuple[TableFacts, ...], log: LogFacts) -> tuple[TableFacts, ...]:
    """With the tables' identities from the source's catalog. The limit of the stream is read before the catalog, so
    the catalog includes every change up to the limit."""
    source = replicator.source
    if isinstance(source, AnnouncesColumns):
        tables = tuple(replace(table, announced=True) for table in tables)
    if not isinstance(source, HasIdentities) or not log.sealed:
        return tables
    identities = source.identities(list(dict.fromkeys(table.task.name_in_source for table in tables)))
    return tuple(_with_identity(source, table, identities.get(table.task.name_in_source), log) for table in tables)


def _with_identity(
    source: HasIdentities, table: TableFacts, identity: TableIdentity | None, log: LogFacts
) -> TableFacts:
    control = table.task.control
    if identity is None or control is None or control.identity is None or control.schema is None:
        return replace(table, identity=identity)
    copied, selected = source_schema(control.schema), source_schema(table.task.schema)
    changes = unlogged_changes(control.identity, identity, copied, selected)
    if changes.attached or changes.detached or changes.added or changes.rewritten:
        truncated = any(
            Operation.TRUNCATE in part.counts
            for number, manifest in log.manifests.items()
            if number > control.window and (part := manifest.tables.get(control.source_table))
        )
        try:
            changes = source.not_streamed(control.source_table, log.hi, identity, changes, truncated)
        except SourceUnreachable:
            raise
        except SourceUnavailable as error:  # a query of this table alone, which may take too long
            return replace(table, identity=identity, problem=error.problems[0])
    return replace(table, identity=identity, unlogged=changes)


def _target_state(replicator: Replicator, selection: Selection) -> TargetState | Retryable | CheckFailed:
    try:
        return replicator.targets.state(selection.table, selection.target)
    except UNREADABLE as error:
        return error


def _table_facts(
    selection: Selection,
    current: TargetState | Retryable | CheckFailed | None,
    row: TableRow | None,
    copied_by: str,
    commands: Iterable[Command],
    renamed_to: str,
    disclosed: Mapping[str, str] | None,
) -> TableFacts:
    known = row is not None and row.state not in NEVER_COPIED and row.control is not None
    failing = row is not None and bool(row.failing_since)
    if isinstance(current, UNREADABLE):
        control = row.control if row else None
        task = selection.task(TableState.FAILING, control, renamed_to=renamed_to, disclosed=disclosed)
        return TableFacts(
            task, exists=known, known=known, copied_by=copied_by, problem=current.problems[0], failing=failing
        )
    control = current.control if current else row.control if row else None
    state = control.state.name if control else TableState.PENDING
    if row and row.state is TableState.FAILING and state in TAKES_CHANGES:
        state = TableState.FAILING
    exists = current.exists if current else True
    restored = current.restored if current else False
    task = selection.task(state, control, _ignored(selection, control, commands), renamed_to, disclosed)
    unfit = current.unfit if current else None
    return TableFacts(task, exists, restored, known, copied_by=copied_by, unfit=unfit, failing=failing)


def _ignored(selection: Selection, control: ControlRecord | None, commands: Iterable[Command]) -> tuple[str, ...]:
    """The columns that an operator has decided not to copy. A copy that an operator requests has all columns again."""
    if control is None or pending_resyncs(commands, selection.table, control):
        return ()
    requested = control.state.name is TableState.RESYNCING and control.state.command
    return () if requested else tuple(still_ignored(control.ignored, selection.selected))


def _copied_by_live_runs(replicator: Replicator, claims: Iterable[Claim], run_id: str) -> dict[str, str]:
    """Table → run id, for tables that another run copies. That run holds the copy lane."""
    holder = replicator.state.holder(replicator.name, Lane.COPY)
    return {claim.table: claim.run_id for claim in claims if claim.run_id == holder and claim.run_id != run_id}


def _log_facts(
    replicator: Replicator,
    last: Manifest | None,
    tables: Iterable[TableFacts],
    rows: dict[str, TableRow],
    whole_log: bool,
) -> LogFacts:
    log = replicator.log
    log_id = log.identity() or ""
    if last is None:
        return LogFacts(log_id)
    oldest, sealed = log.oldest(), last.window
    own_controls = [
        table.task.control
        for table in tables
        if table.task.control and table.task.control.log_id == log_id and table.task.control.window <= sealed
    ]
    in_stream = [control for control in own_controls if control.state.name in TAKES_CHANGES]
    starts = [_search_start(control.window, control.fence, rows.get(control.table)) for control in in_stream]
    first = oldest if whole_log else max(oldest, min(starts, default=sealed) + 1)
    return LogFacts(
        log_id=log_id,
        oldest=oldest,
        sealed=sealed,
        epoch=last.epoch,
        hi=last.hi,
        manifests={manifest.window: manifest for manifest in log.manifests(first) if manifest.window <= sealed},
        sha256={window: _sha256(replicator, window) for window in {control.window for control in own_controls}},
    )


def _search_start(window: int, fence: int, row: TableRow | None) -> int:
    """The window after which a table's records are searched. Windows up to ``row.passed`` have none for this cursor."""
    return max(window, row.passed) if row and (row.window, row.fence) == (window, fence) else window


def _sha256(replicator: Replicator, window: int) -> str:
    try:
        return replicator.log.manifest_sha256(window)
    except FileNotFoundError:
        return ""
