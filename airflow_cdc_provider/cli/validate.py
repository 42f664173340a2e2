"""``airflow cdc validate FILE…``: every error of the files at once."""

from __future__ import annotations

import argparse
from pathlib import Path

from airflow_cdc_provider.cli import answer as a
from airflow_cdc_provider.cli.answer import Answer
from airflow_cdc_provider.cli.running import command
from airflow_cdc_provider.core.errors import DefinitionInvalid, Problem
from airflow_cdc_provider.core.plain import to_plain
from airflow_cdc_provider.loader import load_file


@command
def validate(args: argparse.Namespace) -> Answer:
    files, lines, problems, code = [], [], [], a.OK
    for name in args.files:
        if not Path(name).is_file():
            found = "a folder" if Path(name).is_dir() else "no such file"
            problems.append(Problem("CLI005", "not a file", where=name, found=found, allowed="a YAML file"))
            code = code or a.NO_INPUT
            continue
        try:
            loaded = load_file(name)
        except DefinitionInvalid as invalid:
            problems += invalid.problems
            files.append({"file": name, "valid": False})
            code = invalid.exit_code
            continue
        files.append({"file": name, "valid": True, "warnings": [to_plain(warning) for warning in loaded.warnings]})
        lines.append(f"{name}: valid, replicator {loaded.definition.name}")
        lines += [f"    {warning}" for warning in loaded.warnings]
    return Answer({"files": files}, lines=lines, problems=problems, code=code)
