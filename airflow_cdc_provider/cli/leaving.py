"""``delete``, ``recreate``, ``rename``, ``move``: commands about a whole replicator. They need no run and no Spark.

Each is recorded in the state store before it has an effect, and is finished by its repetition if it dies.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.footprint_output import footprint_body, footprint_lines
from airflow_cdc_provider.cli.output import CommandOutput
from airflow_cdc_provider.cli.replicators import FoundReplicator, current_user, find_registered, load_definitions
from airflow_cdc_provider.cli.typed_name import confirm_by_name
from airflow_cdc_provider.control.delete_replicator import delete_replicator
from airflow_cdc_provider.control.footprint import find_footprint, own_copies, require_known_tables
from airflow_cdc_provider.control.move_staging import move_staging, require_apart, require_empty
from airflow_cdc_provider.control.rename_replicator import rename_replicator
from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.control.replicator_changes import (
    begin,
    begin_rename,
    end_runs,
    require_free_name,
    require_no_runs,
)
from airflow_cdc_provider.control.replicator_changes import recreate as allow_again
from airflow_cdc_provider.core.decisions.replicator_changes import ChangeKind, refusal
from airflow_cdc_provider.core.errors import Blocked, CommandRefused
from airflow_cdc_provider.core.spec.definition import Definition, Source
from airflow_cdc_provider.hooks.connections import connection_info, secrets_of
from airflow_cdc_provider.hooks.dag_runs import running_tasks
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.loader.nested_folders import first_overlap
from airflow_cdc_provider.loader.text_formats import FORMS
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.state.store import StateStore
from airflow_cdc_provider.targets.target import TakesOverTables


@cli_command
def delete(args: argparse.Namespace) -> CommandOutput:
    state = open_state()
    found = find_registered(state, args.name)
    name = found.definition.name
    if found.entry is not None and found.entry.gone and (gone := refusal(found.entry, found.definition)):
        return CommandOutput({"replicator": name, "deleted": True}, lines=[f"nothing to do: {gone.what}"])
    begun = found.entry.unfinished if found.entry is not None else None
    drop_copies = args.drop_copies or (begun is not None and begun.drop_copies)
    replicator = _open(found.definition, state)
    footprint = find_footprint(replicator)
    body = {"replicator": name, **footprint_body(footprint, drop_copies)}
    if args.dry_run:
        return CommandOutput(body, lines=footprint_lines(footprint, drop_copies), problems=footprint.problems)
    before = "see what would be removed with --dry-run, then: "
    confirm_by_name(args, name, "the deletion", footprint_lines(footprint, drop_copies), before)
    if begun is None:
        own_copies(replicator)
    change = begin(state, found.definition, ChangeKind.DELETE, current_user(), drop_copies=drop_copies)
    end_runs(state, name, change, lambda: running_tasks(name))
    lines: list[str] = []
    delete_replicator(replicator, change, _others(state, found.definition), lines.append)
    lines.append(f"deleted {name}. Its DAG and its history stay in Airflow: airflow dags delete {name}")
    return CommandOutput(body | {"deleted": True}, lines=lines)


@cli_command
def recreate(args: argparse.Namespace) -> CommandOutput:
    if not allow_again(open_state(), args.name, current_user()):
        raise CommandRefused.of(
            "CMD030",
            f"no replicator {args.name} was deleted or renamed",
            where=args.name,
            do="nothing: its runs are allowed",
        )
    line = f"the next run of {args.name} starts with first copies"
    return CommandOutput({"replicator": args.name}, lines=[line])


@cli_command
def rename(args: argparse.Namespace) -> CommandOutput:
    state = open_state()
    found = find_registered(state, args.name)
    former, entry = found.definition, found.entry
    if entry is not None and entry.gone and entry.change is not None and entry.change.name == args.new_name:
        return CommandOutput({"from": former.name, "to": args.new_name}, lines=["nothing to do: it is renamed"])
    _require_present(found)
    _require_form("name", args.new_name)
    require_free_name(state, former.name, args.new_name)
    renamed = replace(former, name=args.new_name)
    before, after = _open(former, state), _open(renamed, state)
    for target in former.all_targets:
        if not isinstance(after.targets.named(target.name), TakesOverTables):
            raise CommandRefused.of(
                "CMD031",
                "tables of this target cannot be given to a replicator of another name",
                where=former.name,
                found=f"target type {target.type}",
                do="delete the replicator, and start again under the new name",
            )
    if entry is None or entry.unfinished is None:
        _require_folders_apart(renamed, former.name)
        require_empty(after.log.store)
        own_copies(before)
        require_known_tables(before)
        require_no_runs(state, former.name, lambda: running_tasks(former.name))
    change = begin_rename(state, former, renamed, current_user())
    end_runs(state, former.name, change, lambda: running_tasks(former.name))
    lines: list[str] = []
    rename_replicator(before, after, change, lines.append)
    lines.append(
        f"renamed {former.name} to {renamed.name}: set `name: {renamed.name}` in the YAML. The history of the DAG "
        f"stays under {former.name}: airflow dags delete {former.name}"
    )
    return CommandOutput({"from": former.name, "to": renamed.name}, lines=lines)


@cli_command
def move(args: argparse.Namespace) -> CommandOutput:
    state = open_state()
    found = find_registered(state, args.name)
    definition, name = found.definition, found.definition.name
    begun = found.entry.unfinished if found.entry is not None else None
    _require_present(found)
    _require_form("location", args.staging)
    if begun is not None and begun.kind is ChangeKind.MOVE and begun.former_staging is not None:
        definition = replace(definition, staging=begun.former_staging)
    former = definition.staging
    staging = replace(former, location=args.staging, connection=args.connection)
    replicator = _open(definition, state)
    new = open_log(replace(definition, staging=staging), connection_info(staging.connection)).store
    require_apart(replicator.log.store, new)
    if begun is None:
        _require_folders_apart(replace(definition, staging=staging), name)
        require_empty(new)
        own_copies(replicator)
        require_no_runs(state, name, lambda: running_tasks(name))
    change = begin(state, definition, ChangeKind.MOVE, current_user(), staging=staging, former_staging=former)
    end_runs(state, name, change, lambda: running_tasks(name))
    lines: list[str] = []
    move_staging(replicator, change, new, lines.append)
    connection = f", `staging.connection: {staging.connection}`" if staging.connection else ""
    lines.append(f"moved the staging of {name}: set `staging.location: {staging.location}`{connection} in the YAML")
    return CommandOutput({"replicator": name, "from": former.location, "to": staging.location}, lines=lines)


def _open(definition: Definition, state: StateStore) -> Replicator:
    """Although the entry of the replicator refuses runs."""
    return open_replicator(definition, secrets_of(definition), state)


def _require_present(found: FoundReplicator) -> None:
    """Raises Blocked (CMD020, CMD021) if the replicator was deleted or renamed."""
    if found.entry is not None and found.entry.gone and (problem := refusal(found.entry, found.definition)):
        raise Blocked(problem)


def _require_folders_apart(definition: Definition, former_name: str) -> None:
    """Raises CommandRefused (CMD035) if the YAML could not be loaded afterwards."""
    listed = load_definitions().loaded.values()
    overlap = first_overlap(definition, [one.definition for one in listed if one.definition.name != former_name])
    if overlap is not None:
        raise CommandRefused.of(
            "CMD035",
            f"{overlap.one.what} and {overlap.other.what} would be in one another",
            where=definition.name,
            found=f"{overlap.one.shown}, {overlap.other.shown}",
            do="choose another name or another location for staging",
            data="nothing was changed",
        )


def _others(state: StateStore, definition: Definition) -> list[Source]:
    """The sources of other replicators on the same connection, with a YAML or without."""
    entries = [entry.definition for entry in state.replicators.all().values() if not entry.gone]
    listed = [loaded.definition for loaded in load_definitions().loaded.values()]
    source = definition.source
    return [
        other.source
        for other in (*entries, *listed)
        if other.name != definition.name
        and (other.source.type, other.source.connection) == (source.type, source.connection)
    ]


def _require_form(form: str, text: str) -> None:
    if error := FORMS[form].error(text):
        raise CommandRefused.of(
            "CMD033", f"not a valid {form}", found=f"{text[:100]!r}: {error}", allowed=FORMS[form].allowed
        )
