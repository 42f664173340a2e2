"""Renames a replicator: everything that is bound to its name gets the new one, and no table is copied again. A command
that dies anywhere is finished by its repetition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from airflow_cdc_provider.connectors.source_features import CreatesObjects
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.first_copies import rename_copies
from airflow_cdc_provider.control.footprint import every_table
from airflow_cdc_provider.control.publish_cut import publish_cut
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.control.replicator_changes import check_holder, record, release_lanes
from airflow_cdc_provider.control.rewind import finish_rewind, rewinding_tables
from airflow_cdc_provider.control.table_rows import current_row
from airflow_cdc_provider.core.decisions.replicator_changes import ReplicatorChange, ReplicatorEntry, require_holder
from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import split_token
from airflow_cdc_provider.core.table.renamed_texts import with_new_name
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.staging.transfer import copy_files
from airflow_cdc_provider.staging.whole_windows import WholeWindows
from airflow_cdc_provider.targets.target import ReleasesTables, TakesOverTables, TargetState


def rename_replicator(former: Replicator, renamed: Replicator, change: ReplicatorChange, log_info: LogInfo) -> None:
    """``former`` and ``renamed``: the replicator under both names. Both entries have the ``change``; no run is
    active. Raises Fenced (CMD034) if another process has taken the change over."""

    def check() -> None:
        check_holder(former.state, former.name, change)

    failpoint("rename.begun")
    check()
    source = renamed.source
    has_former_stream = isinstance(source, CreatesObjects) and source.take_objects(former.name)
    failpoint("rename.stream")
    if not change.copied:  # the new folder gets control records later, so it is copied once
        count = copy_files(former.log.store, renamed.log.store, check)
        failpoint("rename.copied")
        change = record(former.state, former.name, change, copied=True)
        log_info(f"copied {count} files to {renamed.log.store.root}")
    rename_copies(renamed, former.name, every_table(renamed))
    _take_over_tables(former, renamed, change, check, log_info)
    check()
    former.state.replicators.rename_rows(former.name, renamed.name)
    failpoint("rename.rows")
    check()
    _refresh_rows(renamed, former.name)
    _replace_cut(former, renamed)
    check()
    former.log.store.delete("")
    failpoint("rename.removed")
    check()
    if has_former_stream:
        former.source.drop_stream()
    _finish(former, renamed, change)


def _take_over_tables(
    former: Replicator, renamed: Replicator, change: ReplicatorChange, check: Callable[[], None], log_info: LogInfo
) -> None:
    """First under the former name: there, a driver that is out of reach may still commit."""
    for table, target_table in {**every_table(renamed), **every_table(former)}.items():
        old, target = former.targets.of(table), renamed.targets.of(table)
        assert isinstance(target, TakesOverTables)
        before, now = old.state(table, target_table), target.state(table, target_table)
        if before.control is None or before.control.replicator != former.name or _is_taken(renamed, before, now):
            continue
        check()
        if rewinding_tables({table: before}, before.control.owner):
            _finish_rewind(former, table, target_table, change, log_info)
            before = old.state(table, target_table)
        check()
        assert before.control is not None
        commit_fence(former, table, target_table, before, change.requested_by, owner=before.control.owner)
        before = old.state(table, target_table)
        assert before.control is not None
        check()
        state = with_new_name(before.control.state, former.name, renamed.name)
        control = before.control.fenced(state, replicator=renamed.name, attempt=change.id, committed_at=utc_now())
        highest = split_token(max(before.token or 0, now.token or 0))[0]
        target.take_over(target_table, before, replace(control, fence=max(control.fence, highest + 1)))
        log_info(f"{table}: the copy belongs to {renamed.name}")
        failpoint("rename.table")


def _finish_rewind(
    former: Replicator, table: str, target_table: str, change: ReplicatorChange, log_info: LogInfo
) -> None:
    """Under the new name the earlier version is unknown."""
    try:
        finish_rewind(former, table, target_table, change.requested_by)
    except Blocked as error:  # the copy waits for a resync, under the new name, too
        log_info(f"{table}: {error}")


def _is_taken(renamed: Replicator, before: TargetState, now: TargetState) -> bool:
    """The history of a table may also contain records of an earlier replicator with the new name."""
    own = now.control is not None and now.control.replicator == renamed.name
    return own and (now.token or 0) > (before.token or 0)


def _refresh_rows(renamed: Replicator, former: str) -> None:
    """The rows have the records and the command lines of the former name."""
    states = {
        table: (target, renamed.targets.state(table, target).control) for table, target in every_table(renamed).items()
    }
    at = renamed.state.now()

    def refreshed(rows: Mapping[str, TableRow]) -> Iterator[TableRow]:
        before = {table: with_new_name(row, former, renamed.name) for table, row in rows.items()}
        for table, (target, control) in states.items():
            if control is not None:
                before[table] = current_row(table, target, control, before.get(table), at)
        yield from before.values()

    renamed.state.change_tables(renamed.name, refreshed)


def _replace_cut(former: Replicator, renamed: Replicator) -> None:
    if sealed := renamed.log.sealed():
        windows = WholeWindows(renamed.log)
        for name in renamed.targets:
            publish_cut(renamed, name, renamed.state.tables(renamed.name).values(), sealed, windows)
    for target in map(former.targets.named, former.targets):
        if isinstance(target, ReleasesTables):
            target.withdraw_cut()


def _finish(former: Replicator, renamed: Replicator, change: ReplicatorChange) -> None:
    state = former.state
    for name in (former.name, renamed.name):
        state.write_audit(name, change.requested_by, "rename", {"from": former.name, "to": renamed.name})
        release_lanes(state, name, change.holder)
    failpoint("rename.audited")
    done = replace(change, done_at=utc_now())
    state.replicators.change_two(
        former.name,
        renamed.name,
        lambda entry: replace(require_holder(entry, former.name, change), change=done),
        lambda _: ReplicatorEntry(renamed.definition, utc_now()),
    )
