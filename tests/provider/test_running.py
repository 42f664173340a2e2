"""What a command leaves behind in the process that ran it."""

from __future__ import annotations

import argparse
import os

import pytest

from airflow_cdc_provider.cli.command_runner import CONTEXT, cli_command
from airflow_cdc_provider.cli.output import CommandOutput


@pytest.mark.parametrize("said", [None, "client"])
def test_a_command_is_a_server_process_of_airflow_while_it_works_and_no_longer(
    monkeypatch: pytest.MonkeyPatch, said: str | None
) -> None:
    monkeypatch.delenv(CONTEXT, raising=False)
    if said:
        monkeypatch.setenv(CONTEXT, said)
    seen = []

    @cli_command
    def look(_: argparse.Namespace) -> CommandOutput:
        seen.append(os.environ.get(CONTEXT))
        return CommandOutput({})

    with pytest.raises(SystemExit):
        look(argparse.Namespace(output="json"))
    assert seen == [said or "server"]
    assert os.environ.get(CONTEXT) == said
