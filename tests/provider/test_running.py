"""The environment of the process of a command."""

from __future__ import annotations

import argparse
import os

import pytest

from airflow_cdc_provider.cli.command_runner import CONTEXT, cli_command
from airflow_cdc_provider.cli.output import CommandOutput


@pytest.mark.parametrize("before", [None, "client"])
def test_a_command_is_a_server_process_of_airflow_only_while_it_runs(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    monkeypatch.delenv(CONTEXT, raising=False)
    if before:
        monkeypatch.setenv(CONTEXT, before)
    seen = []

    @cli_command
    def command(_: argparse.Namespace) -> CommandOutput:
        seen.append(os.environ.get(CONTEXT))
        return CommandOutput({})

    with pytest.raises(SystemExit):
        command(argparse.Namespace(output="json"))
    assert seen == [before or "server"]
    assert os.environ.get(CONTEXT) == before
