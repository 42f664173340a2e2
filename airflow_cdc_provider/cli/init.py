"""``airflow cdc init``: writes the YAML of a replicator for the tables that a source has now."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

from airflow_cdc_provider.cli.assess import table_listing
from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput
from airflow_cdc_provider.connectors import FORMATS, MESSAGE_SOURCES, SOURCES
from airflow_cdc_provider.connectors.registry import open_source
from airflow_cdc_provider.connectors.source import SourceConnector
from airflow_cdc_provider.connectors.source_features import ProposesOptions, RegistryAccess
from airflow_cdc_provider.control.assessments import assess
from airflow_cdc_provider.control.examine import Examination, examine
from airflow_cdc_provider.core.assessment.copy_rate import DEFAULT_RATES
from airflow_cdc_provider.core.assessment.draft import (
    NO_MATCH,
    NO_TABLE,
    Draft,
    DraftTable,
    columns_to_exclude,
    with_tables,
)
from airflow_cdc_provider.core.assessment.plain import plain_assessment
from airflow_cdc_provider.core.assessment.support import ReplicatorAssessment
from airflow_cdc_provider.core.errors import CheckFailed, CommandRefused, DefinitionInvalid
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.special_values import unsupported_values, unsupported_values_text
from airflow_cdc_provider.hooks.connections import connection_info, secrets_of
from airflow_cdc_provider.loader import load_text
from airflow_cdc_provider.loader.draft import draft_text
from airflow_cdc_provider.loader.options import parse_value
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.targets.registry import open_targets
from airflow_cdc_provider.targets.target import TargetTables

EXAMPLE_LAKE = "/data/lake"
TOO_MANY = "DEF024"


@dataclass(frozen=True)
class Assessed:
    """A definition, what its systems answer, and the values per table that stop the copy."""

    definition: Definition
    examination: Examination
    assessment: ReplicatorAssessment
    notes: Mapping[str, str]


@cli_command
def init(args: argparse.Namespace) -> CommandOutput:
    path = Path(args.file) if args.file else None
    if path:
        _require_writable(path, args.overwrite)
    target_given = bool(args.location or args.target_connection)
    draft = _first_draft(args)
    whole = _assessed(draft, target_given)
    _require_source(whole.examination, args.tables)
    found = _without_unusable_columns(draft, whole, target_given)
    draft = with_tables(draft, whole.assessment, found.assessment, found.notes, target_given)
    text = draft_text(draft)
    load_text(text.encode(), f"{draft.name}.yaml")
    if path:
        with path.open("w" if args.overwrite else "x", encoding="utf-8") as file:
            file.write(text)
    problems = [problem for problem in found.examination.problems if not problem.table]
    return CommandOutput(
        {"file": str(path or ""), "yaml": text, **plain_assessment(found.assessment)},
        table_listing(found.assessment.tables),
        _lines(path, draft) if path else (),
        problems,
        verbatim=() if path else text.splitlines(),
    )


def _require_writable(path: Path, overwrite: bool) -> None:
    """Before the source is read. Raises CommandRefused."""
    if path.is_dir() or (path.exists() and not overwrite):
        found, do = "a folder" if path.is_dir() else "a file", "name another file, or add --overwrite"
        raise CommandRefused.of("CLI023", "the file exists", where=str(path), found=found, do=do)
    if not path.parent.is_dir():
        do = f"mkdir -p {path.parent}"
        raise CommandRefused.of("CLI024", "the folder of the file does not exist", where=str(path), do=do)


def _first_draft(args: argparse.Namespace) -> Draft:
    """With the patterns of the tables in place of the tables."""
    given, name = _options(args.option, "--option"), args.name or _name_of(args.connection or args.source_type)
    proposed = _proposed_options(args, name, given)
    source = {"type": args.source_type, **({"connection": args.connection} if args.connection else {})}
    target = {"type": args.target_type, **_options(args.target_option, "--target-option")}
    target |= {"location": args.location} if args.location else {}
    target |= {"connection": args.target_connection} if args.target_connection else {}
    target |= {} if "location" in target or "connection" in target else {"location": f"{EXAMPLE_LAKE}/{name}"}
    return Draft(
        name,
        {**source, **proposed, **given},
        target,
        args.staging or f"{EXAMPLE_LAKE}/_cdc",
        tuple(map(DraftTable, args.tables or ["*"])),
    )


def _proposed_options(args: argparse.Namespace, name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the source type proposes in addition to the given options."""
    if args.source_type in FORMATS:
        transports = " or ".join(sorted(MESSAGE_SOURCES))
        do = f"--source-type kafka --option format={args.source_type} --option 'topics=[…]', or --source-type files "
        do += f"--option format={args.source_type} --option location=…"
        what = f"{args.source_type} is a format of messages, and no source type"
        raise CommandRefused.of("CLI019", what, where="--source-type", allowed=transports, do=do)
    kind = load_class("source", args.source_type, SOURCES)
    if not args.connection or not issubclass(kind, ProposesOptions):
        return {}
    options: Mapping[str, Any] = kind.propose_options(name, connection_info(args.connection), given, args.tables)
    return options


def _assessed(draft: Draft, target_given: bool) -> Assessed:
    """Raises DefinitionInvalid if the YAML of the draft has errors: an option is missing or invalid."""
    definition = load_text(draft_text(draft).encode(), f"{draft.name}.yaml").definition
    secrets = secrets_of(definition)
    log = open_log(definition, secrets.staging)
    source = open_source(definition, secrets.source, RegistryAccess(secrets.registry, log))
    targets = open_targets(definition, secrets, log)
    examination = examine(definition, source, targets, target_given)
    assessment = assess(definition, source, targets, examination, DEFAULT_RATES.get(definition.source.type))
    return Assessed(definition, examination, assessment, _value_notes(examination, source, targets.only))


def _value_notes(examination: Examination, source: SourceConnector, target: TargetTables) -> dict[str, str]:
    notes = {}
    for task in examination.tasks:
        if values := unsupported_values(task, source.may_hold, target.unsupported_values):
            notes[task.table] = f"stops at values that the copy cannot hold: {unsupported_values_text(values)}"
    return notes


def _require_source(examination: Examination, patterns: Sequence[str]) -> None:
    """Raises CheckFailed if the source did not answer, and DefinitionInvalid if the user's patterns select nothing, or
    too much."""
    codes = {TOO_MANY, NO_MATCH, NO_TABLE} if patterns else {TOO_MANY}
    wrong = [problem for problem in examination.problems if problem.code in codes]
    if wrong and examination.described:
        raise DefinitionInvalid(*wrong)
    failed = [problem for problem in examination.problems if problem.code != NO_MATCH and not problem.table]
    if failed and not examination.described:
        raise CheckFailed(*failed)


def _without_unusable_columns(draft: Draft, found: Assessed, target_given: bool) -> Assessed:
    """What the systems answer to a definition without the columns that cannot be copied."""
    entries = tuple(DraftTable(table.table, columns_to_exclude(table)) for table in found.assessment.tables)
    if not any(entry.exclude for entry in entries):
        return found
    return _assessed(replace(draft, tables=entries), target_given)


def _options(texts: Sequence[str], flag: str) -> dict[str, Any]:
    """``KEY=VALUE``, with the value in YAML notation."""
    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            options[name] = parse_value(value)
        except ValueError:
            equals = ""
        if not equals:
            what, allowed = "an option has no value", "KEY=VALUE, with the value as in the YAML"
            raise CommandRefused.of("CLI019", what, where=flag, found=name, allowed=allowed)
    return options


def _name_of(connection: str) -> str:
    """A valid name of a replicator, from that of a connection: without what connections are often called."""
    words = re.sub(r"[^a-z0-9]+", "_", connection.lower()).strip("_")
    short = words.removesuffix("_db").removesuffix("_default") or words
    return (short if short[:1].isalpha() else f"cdc_{short}")[:50]


def _lines(path: Path, draft: Draft) -> list[str]:
    active = sum(not table.disabled for table in draft.tables)
    disabled = len(draft.tables) - active
    comments = f", {disabled} more as comments with the reason" if disabled else ""
    file = quote(str(path))
    return [
        f"{path}: {active} tables{comments}",
        f"next: airflow cdc validate {file}; airflow cdc check {file}",
    ]
