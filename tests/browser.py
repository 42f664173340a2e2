"""A headless Chromium, logged in to Airflow, and the faults that axe-core finds in a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect, sync_playwright

SLOWEST_ANSWER_MS = 60_000.0
expect.set_options(timeout=SLOWEST_ANSWER_MS)
GRAVE = frozenset({"serious", "critical"})
SCREENSHOTS = "SCREENSHOTS"
"""The environment variable with the folder that gets the pictures of the docs, ``docs/images``."""


@contextmanager
def browser_page(url: str, token: str) -> Iterator[Page]:
    """``token``: of a user of Airflow. Every error that the page's scripts or its content policy report fails the
    block at its end; if it fails, the texts of the page are printed. Without Chromium, the test is skipped on a laptop
    and fails in CI."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        message = "no chromium is installed; on Debian: apt-get install chromium"
        if os.environ.get("CI"):
            raise RuntimeError(message)
        pytest.skip(message)
    errors = list[str]()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(SLOWEST_ANSWER_MS)
        context.add_cookies([{"name": "_token", "value": token, "url": url}])
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if "Content Security Policy" in line.text else None)
        try:
            yield page
        except BaseException:
            print(*(f"{frame.url}\n{frame.locator('body').inner_text()}" for frame in page.frames), *errors, sep="\n")
            raise
        finally:
            browser.close()
    assert errors == []


def grave_faults(page: Page) -> list[str]:
    """The rules of accessibility that the page breaks seriously, with the element."""
    violations = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in violations if one["impact"] in GRAVE]


def picture(page: Page, name: str) -> None:
    """For the docs, where they are asked for."""
    if folder := os.environ.get(SCREENSHOTS):
        page.screenshot(path=Path(folder) / f"{name}.png")
