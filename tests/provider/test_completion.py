"""The completion of ``airflow cdc …`` by the shell: argcomplete's, as of Airflow's own commands."""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import argcomplete
import pytest
from airflow.cli.cli_parser import _add_command

from airflow_cdc_provider.cli.commands import get_cli_commands
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness

Complete = Callable[[str], list[str]]

SEPARATOR = "\v"
SHELL = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": SEPARATOR, "COMP_TYPE": "9"}


class Ended(Exception):
    pass


class Finder(argcomplete.CompletionFinder):
    def _init_debug_stream(self) -> None:
        """Not file 9, which is pytest's."""


@pytest.fixture
def complete(cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """What may follow the last word of a line, in a home with the replicator ``shop``."""

    def ended(code: int) -> None:
        raise Ended

    def completions(line: str) -> list[str]:
        variables = {
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_IFS": SEPARATOR,
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        parser = argparse.ArgumentParser(prog="airflow")
        (group,) = get_cli_commands()
        _add_command(parser.add_subparsers(dest="subcommand"), group)
        out = io.StringIO()
        with pytest.raises(Ended):
            Finder()(parser, exit_method=ended, output_stream=out)
        return sorted(word.strip() for word in out.getvalue().split(SEPARATOR) if word.strip())

    return completions


def test_subcommands_are_completed(complete: Complete) -> None:
    assert complete("airflow cdc re") == ["recreate", "rename", "resume", "resync", "rewind"]
    assert complete("airflow cdc quarantine ") == sorted(["-h", "--help", "discard", "list", "replay", "show"])


@pytest.mark.parametrize("command", ["status", "pause", "rewind --to 1", "quarantine list", "describe", "verify --now"])
def test_names_of_replicators_are_completed(complete: Complete, command: str) -> None:
    assert complete(f"airflow cdc {command} s") == ["shop"]


def test_options_and_their_values_are_completed(complete: Complete) -> None:
    assert complete("airflow cdc resync shop --t") == ["--table"]
    assert complete("airflow cdc status --output j") == ["json"]
    assert complete("airflow cdc decide shop --answer re") == ["rename", "repair", "resync"]
    assert complete("airflow cdc init --source-type sales") == ["salesforce", "salesforce_poll"]
    assert complete("airflow cdc init --source-type mysql --target-type s") == ["snowflake", "spanner"]
    assert "debezium" in complete("airflow cdc decode --source-type ")


def test_tables_are_those_that_the_last_run_has_seen(complete: Complete, harness: RunHarness) -> None:
    assert complete("airflow cdc pause shop --table p") == []
    replicated(harness)
    assert complete("airflow cdc pause shop --table p") == ["public.a", "public.b"]
    assert complete("airflow cdc describe shop public.b") == ["public.b"]
    assert complete("airflow cdc pause other --table p") == []


def test_without_a_state_store_no_table_is_completed(complete: Complete, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CDC_STATE", "postgresql://cdc:geheim@127.0.0.1:1/cdc")
    assert complete("airflow cdc pause shop --table p") == []


def test_files_are_completed_by_the_shell(complete: Complete, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").touch()
    assert complete(f"airflow cdc validate {tmp_path}/on") == [f"{tmp_path}/one.yaml"]


def test_the_command_of_airflow_completes(cdc: CommandLine, harness: RunHarness, tmp_path: Path) -> None:
    line, answer = "airflow cdc status sh", tmp_path / "answer"
    files = {"_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    environment = os.environ | SHELL | files | {"COMP_LINE": line, "COMP_POINT": str(len(line))}
    done = subprocess.run([sys.executable, "-m", "airflow"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1000:]
    assert answer.read_text().strip() == "shop"
