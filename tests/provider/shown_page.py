"""The page in a browser, served without an Airflow around it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from playwright.sync_api import Page, expect

from airflow_cdc_provider.sandbox.ports import free_ports
from tests.browser import browser_page
from tests.provider.api_client import api_client
from tests.provider.run_harness import RunHarness


@dataclass
class Shown:
    page: Page
    url: str
    harness: RunHarness

    def open(self, place: str) -> None:
        self.page.goto(f"{self.url}/{place}")
        self.page.reload()
        expect(self.page.get_by_role("status")).to_contain_text("as of")


@contextmanager
def shown_page(harness: RunHarness, role: str = "user") -> Iterator[Shown]:
    client = api_client()
    (port,) = free_ports(1)
    server = uvicorn.Server(uvicorn.Config(client.http.app, host="127.0.0.1", port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    url = f"http://127.0.0.1:{port}"
    try:
        with browser_page(url, client.tokens[role]) as page:
            yield Shown(page, url, harness)
    finally:
        server.should_exit = True
        thread.join()
