"""The org in a process of its own, so that it and its client do not take turns on one interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import requests

from airflow_cdc_provider.core.errors import CheckFailed, Problem

STOP_LIMIT_S = 20


class OrgProcess:
    """``with OrgProcess("--size", "demo") as org``: its arguments are those of the command. It ends with its parent.

    The attributes are those of SalesforceOrg; ``admin`` does what the Python API does there.
    """

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments

    def __enter__(self) -> OrgProcess:
        module = "airflow_cdc_provider.sandbox.salesforce.serving"
        command = [sys.executable, "-m", module, "--follow-input", *self._arguments]
        self._running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._running.stdout is not None
        line = self._running.stdout.readline()
        if not line:
            self.__exit__()
            found = f"exit code {self._running.returncode}"
            raise CheckFailed(Problem("ENV017", "the sandbox org did not start", found=found, do="see its output"))
        told = json.loads(line)
        self.instance_url, self.pubsub_endpoint = told["instance_url"], told["pubsub_endpoint"]
        self.org_id, self.client_id, self.client_secret = told["org_id"], told["client_id"], told["client_secret"]
        self.tls_url, self.certificate = told.get("tls_url"), told.get("certificate")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._running.stdin is not None and self._running.stdout is not None
        self._running.stdin.close()
        try:
            self._running.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()
        self._running.stdout.close()

    @property
    def pid(self) -> int:
        return self._running.pid

    def admin(self, command: str, **body: Any) -> Any:
        """What the command answers. Raises requests.HTTPError."""
        answer = requests.post(f"{self.instance_url}/admin/{command}", json=body, timeout=600)
        answer.raise_for_status()
        return answer.json()

    def state(self, name: str, **options: Any) -> dict[str, dict[str, Any]]:
        """The ledger's state of an object, by record id."""
        answer = requests.get(f"{self.instance_url}/admin/ledger/{name}", params=options, timeout=600)
        answer.raise_for_status()
        records = [json.loads(line) for line in answer.content.splitlines()]
        return {record["Id"]: record for record in records}
