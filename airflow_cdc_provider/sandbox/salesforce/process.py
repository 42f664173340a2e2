"""The org in a separate process, so that it and its client do not share one interpreter lock."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import requests

from airflow_cdc_provider.core.errors import CheckFailed

STOP_LIMIT_S = 20


class OrgProcess:
    """``with OrgProcess("--size", "demo") as org``: the arguments are those of ``serving``. It ends with its parent.

    It has the attributes of SalesforceOrg. ``admin`` replaces its methods.
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
            raise CheckFailed.of("ENV017", "the sandbox org did not start", found=found, do="read its output")
        info = json.loads(line)
        self.instance_url, self.pubsub_endpoint = info["instance_url"], info["pubsub_endpoint"]
        self.org_id, self.client_id, self.client_secret = info["org_id"], info["client_id"], info["client_secret"]
        self.tls_url, self.certificate = info.get("tls_url"), info.get("certificate")
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
        """The response of an admin command. Raises requests.HTTPError."""
        response = requests.post(f"{self.instance_url}/admin/{command}", json=body, timeout=600)
        response.raise_for_status()
        return response.json()

    def state(self, name: str, **options: Any) -> dict[str, dict[str, Any]]:
        """The records of an object in the ledger, by id."""
        response = requests.get(f"{self.instance_url}/admin/ledger/{name}", params=options, timeout=600)
        response.raise_for_status()
        records = [json.loads(line) for line in response.content.splitlines()]
        return {record["Id"]: record for record in records}
