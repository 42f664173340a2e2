"""``airflow cdc sandbox salesforce``."""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from airflow.cli.cli_parser import _add_command

from airflow_cdc_provider.cli.commands import get_cli_commands

pytestmark = pytest.mark.server


def test_the_sandbox_runs_until_it_is_stopped_and_prints_the_settings_of_a_client(tmp_path: Path) -> None:
    airflow = str(Path(sys.executable).with_name("airflow"))
    command = [airflow, "cdc", "sandbox", "salesforce", "--size", "empty", "--json"]
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        connection = json.loads(running.stdout.readline())
        assert requests.get(f"{connection['instance_url']}/services/data/", timeout=60).status_code == 200
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate()
    assert json.loads(output) == {"stopped": True}
    assert running.returncode == 0


def test_a_port_in_use_is_reported_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser(prog="airflow")
    (group,) = get_cli_commands()
    _add_command(parser.add_subparsers(dest="subcommand"), group)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SystemExit) as ended:
        args = parser.parse_args(["cdc", "sandbox", "salesforce", "--port", str(taken.getsockname()[1])])
        args.func(args)
    output = capsys.readouterr()
    assert ended.value.code == 78
    assert "ENV018" in output.err and "Traceback" not in output.err and output.out == ""
