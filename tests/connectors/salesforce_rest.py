"""A plain REST client for the tests of the sandbox org, with paths in place of addresses and the integration user's
token."""

from __future__ import annotations

from typing import Any

import requests

from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from tests.waiting import until

V = "/services/data/v66.0"


class Client(requests.Session):
    def __init__(self, org: SalesforceOrg) -> None:
        super().__init__()
        self.org = org
        self.log_in()

    def log_in(self) -> None:
        self.headers["Authorization"] = f"Bearer {self.org.tokens.issue(self.org.integration)}"

    def request(self, method: Any, url: Any, *args: Any, **options: Any) -> requests.Response:
        return super().request(method, self.org.instance_url + url, *args, **options)

    def query(self, text: str, resource: str = "query", **headers: str) -> requests.Response:
        return self.get(f"{V}/{resource}", params={"q": text}, headers=headers)

    def job(self, text: str, **more: str) -> str:
        """The path of a new Bulk job."""
        answer = self.post(f"{V}/jobs/query", json={"operation": "query", "query": text, **more})
        assert answer.status_code == 200, answer.text
        assert answer.json()["state"] == "UploadComplete"
        return f"{V}/jobs/query/{answer.json()['id']}"

    def wait(self, job: str, state: str = "JobComplete") -> Any:
        """The description of the job once it has the state."""
        until(lambda: self.get(job).json()["state"] == state, f"{state} of {job}", every_s=0.005)
        return self.get(job).json()

    def admin(self, command: str, **body: Any) -> Any:
        answer = self.post(f"/admin/{command}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()


def refusal(answer: requests.Response) -> tuple[int, str]:
    (error,) = answer.json()
    return answer.status_code, error["errorCode"]
