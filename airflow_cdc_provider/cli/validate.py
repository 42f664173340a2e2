"""``airflow cdc validate FILE…``: shows all errors of the files, and conflicts with other replicators' files."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_cdc_provider.cli import exit_codes
from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput
from airflow_cdc_provider.core.errors import DefinitionInvalid, Problem
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.loader import Loaded, find_clashes, load_file

REMEDY = "type the path of a file; `airflow cdc check` accepts the name of a replicator, too"


@cli_command
def validate(args: argparse.Namespace) -> CommandOutput:
    loaded: dict[str, Loaded | None] = {}
    problems: list[Problem] = []
    code = exit_codes.OK
    for name in args.files:
        if not Path(name).is_file():
            found = "a folder" if Path(name).is_dir() else "no such file"
            problems.append(Problem("CLI005", "not a file", name, found, "a YAML file", REMEDY))
            code = code or exit_codes.NO_INPUT
            continue
        try:
            loaded[name] = load_file(name)
        except DefinitionInvalid as invalid:
            problems += invalid.problems
            loaded[name] = None
    conflicts = find_clashes(loaded_file for loaded_file in loaded.values() if loaded_file)
    problems += [problem for found in conflicts.values() for problem in found]
    results = {name: None if name in conflicts else loaded_file for name, loaded_file in loaded.items()}
    if None in results.values():
        code = exit_codes.CONFIGURATION
    return CommandOutput(
        {"files": [_file(name, result) for name, result in results.items()]},
        lines=_lines(results),
        problems=problems,
        code=code,
    )


def _file(name: str, loaded: Loaded | None) -> dict[str, Any]:
    if loaded is None:
        return {"file": name, "valid": False}
    return {"file": name, "valid": True, "warnings": [to_plain(warning) for warning in loaded.warnings]}


def _lines(results: Mapping[str, Loaded | None]) -> list[str]:
    lines = []
    for name, loaded in results.items():
        if loaded is not None:
            lines.append(f"{name}: valid, replicator {loaded.definition.name}")
            lines += [f"    {warning}" for warning in loaded.warnings]
    return lines
