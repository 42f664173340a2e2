"""The line that a refused command names as its remedy: the same command, confirmed."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from itertools import product

import pytest
from airflow.cli.cli_config import ActionCommand, CLICommand, GroupCommand
from airflow.cli.cli_parser import _add_command

from airflow_cdc_provider.cli import leaving
from airflow_cdc_provider.cli.commands import get_cli_commands
from airflow_cdc_provider.core.decisions.replicator_changes import ChangeKind, ReplicatorChange
from airflow_cdc_provider.core.spec.definition import Staging
from tests.provider.bad_records import TABLE, with_bad_records
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness

HOSTILE = "it's 12:00; rm -rf \"$HOME\" 'ä'"
POSITIONAL = {"name": ["shop"], "ids": ["083977a9521d", "another one"]}
REQUIRED = ("--to", "--reason")


@pytest.fixture(autouse=True)
def no_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "running_tasks", lambda dag_id: [])


def commands(listed: tuple[CLICommand, ...], *before: str) -> Iterator[tuple[tuple[str, ...], ActionCommand]]:
    for one in listed:
        if isinstance(one, GroupCommand):
            yield from commands(tuple(one.subcommands), *before, one.name)
        elif isinstance(one, ActionCommand):
            yield (*before, one.name), one


def confirmed_commands() -> dict[tuple[str, ...], ActionCommand]:
    return {
        words: one
        for words, one in commands(tuple(get_cli_commands()))
        if any("--yes" in argument.flags for argument in one.args)
    }


def given(command: ActionCommand, *, hostile: bool) -> list[list[str]]:
    """The words of each argument but ``--yes``, each option with one value, or two if it may be repeated."""
    words = []
    for argument in command.args:
        flag, options = argument.flags[-1], argument.kwargs
        values = [HOSTILE, "-1", ""] if hostile else ["1", "-1"]
        if flag == "--yes" or "--json" in argument.flags:
            continue
        if not flag.startswith("-"):
            words.append(POSITIONAL[flag])
        elif options.get("action") == "store_true":
            words.append([flag])
        elif options.get("action") == "append":
            words.append([f"{flag}={value}" for value in values])
        elif flag != "--output":
            words.append([f"{flag}={values[0]}"])
    return words


def parsed(words: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="airflow")
    (group,) = get_cli_commands()
    _add_command(parser.add_subparsers(dest="subcommand"), group)
    return {name: value for name, value in vars(parser.parse_args(words)).items() if name != "func"}


def line_of(cdc: CommandLine, words: list[str]) -> list[str]:
    """The words of the line in the refusal, without ``airflow``."""
    result = cdc(*words[1:], "--json")
    (problem,) = result.body["problems"]
    assert (result.code, problem["code"]) == (64, "CMD032")
    line = shlex.split(problem["do"][problem["do"].index("airflow cdc") :])
    assert line[0] == "airflow"
    return line[1:]


@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.parametrize("words", confirmed_commands())
def test_the_line_of_a_refusal_is_the_given_command_with_the_name(
    cdc: CommandLine, harness: RunHarness, words: tuple[str, ...], hostile: bool
) -> None:
    groups = given(confirmed_commands()[words], hostile=hostile)
    required = [group for group in groups if not group[0].startswith("--") or group[0].startswith(REQUIRED)]
    without_name = words[-1] == "resync"
    for chosen, typed in product((required, groups), ([], ["--yes", "shpo"])):
        line = [*words, *(word for group in chosen for word in group if word != "--dry-run")]
        if typed or not without_name:
            named = line_of(cdc, [*line, *typed])
            assert parsed(named) == {**parsed([*line, "--json"]), "yes": "shop"}


def test_a_typed_line_is_about_the_given_tables_only(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    for table in ("public.a", "public.b"):
        harness.source.change(table)
    harness.run("r2")
    named = line_of(cdc, ["cdc", "rewind", "shop", "--table", "public.a", "--to", "1"])
    assert cdc(*named[1:]).code == 0
    assert [harness.control(table).window for table in ("public.a", "public.b")] == [1, 2]


def test_a_replicator_that_was_given_by_its_file_is_confirmed_by_its_name(
    cdc: CommandLine, harness: RunHarness
) -> None:
    with_bad_records(harness)
    file = str(harness.folder / "dags/replicators/shop.yaml")
    for words in (
        ["quarantine", "discard", file, "one", "--reason", "test data"],
        ["resync", file, "--table", TABLE, "--yes", file],
        ["rewind", file, "--table", TABLE, "--to", "1"],
        ["delete", file, "--drop-copies"],
    ):
        named = line_of(cdc, ["cdc", *words])
        assert named[1 + words.index(file) : 2 + words.index(file)] == [file]
        assert "CMD032" not in cdc(*named[1:]).out


def test_the_lines_about_whole_replicators_are_read_by_a_shell_as_they_were_given(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    move = ReplicatorChange(ChangeKind.MOVE, "1", "ann", "", staging=Staging("/data/it's $HOME", "my lake"))
    expected = ["airflow", "cdc", "move", "shop", "--staging", "/data/it's $HOME", "--connection", "my lake"]
    assert shlex.split(move.command("shop")) == expected
    file, source = f"{harness.folder}/the shop's.yaml", f"path={harness.source.path}"
    named = cdc("init", "--source-type", "file", "--connection", "shop_db", "--option", source, "--file", file)
    validate, check = named.out.partition("next: ")[2].split(";")
    assert (shlex.split(validate)[2:], shlex.split(check)[2:]) == (["validate", file], ["check", file])


def test_the_remedy_of_a_deleted_copy_is_about_this_copy_alone(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    assert cdc("delete", "shop", "--yes", "shop").code == 0
    remedy = harness.control("public.b").state.remedy
    assert remedy == "airflow cdc resume shop --table public.b; then airflow cdc resync shop --table public.b"
