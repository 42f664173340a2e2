"""``airflow cdc validate FILE…``: every error of the files at once, and what they share with their neighbours."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_cdc_provider.cli import output as a
from airflow_cdc_provider.cli.command_runner import command
from airflow_cdc_provider.cli.output import Answer
from airflow_cdc_provider.core.errors import DefinitionInvalid, Problem
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.loader import Loaded, find_clashes, load_file


@command
def validate(args: argparse.Namespace) -> Answer:
    loaded: dict[str, Loaded | None] = {}
    problems: list[Problem] = []
    code = a.OK
    for name in args.files:
        if not Path(name).is_file():
            found = "a folder" if Path(name).is_dir() else "no such file"
            problems.append(Problem("CLI005", "not a file", where=name, found=found, allowed="a YAML file"))
            code = code or a.NO_INPUT
            continue
        try:
            loaded[name] = load_file(name)
        except DefinitionInvalid as invalid:
            problems += invalid.problems
            loaded[name] = None
    shared = find_clashes(one for one in loaded.values() if one)
    problems += [problem for found in shared.values() for problem in found]
    answers = {name: None if name in shared else one for name, one in loaded.items()}
    if None in answers.values():
        code = a.CONFIGURATION
    return Answer(
        {"files": [_file(*one) for one in answers.items()]}, lines=_lines(answers), problems=problems, code=code
    )


def _file(name: str, loaded: Loaded | None) -> dict[str, Any]:
    if loaded is None:
        return {"file": name, "valid": False}
    return {"file": name, "valid": True, "warnings": [to_plain(warning) for warning in loaded.warnings]}


def _lines(answers: Mapping[str, Loaded | None]) -> list[str]:
    lines = []
    for name, loaded in answers.items():
        if loaded is not None:
            lines.append(f"{name}: valid, replicator {loaded.definition.name}")
            lines += [f"    {warning}" for warning in loaded.warnings]
    return lines
