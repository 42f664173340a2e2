"""The page's own files: small, and without what lets a text become code."""

from __future__ import annotations

import re
from pathlib import Path

import airflow_cdc_provider.ui

FOLDER = Path(airflow_cdc_provider.ui.__file__).parent / "page"
FILES = {file.name: file.read_text() for file in FOLDER.iterdir()}
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}
MOST_BYTES = 48 * 1024
MOST_LINES_OF_A_SCRIPT = 160
AS_CODE = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\bon\w+=|javascript:"
)
ADDRESS = re.compile(r"(?:https?:)?//[\w.]+\.\w+")


def test_the_page_is_small() -> None:
    assert sum(len(text.encode()) for text in FILES.values()) <= MOST_BYTES
    assert {name for name, text in SCRIPTS.items() if len(text.splitlines()) > MOST_LINES_OF_A_SCRIPT} == set()


def test_no_text_becomes_code_and_nothing_comes_from_another_host() -> None:
    found = {name: AS_CODE.findall(text) for name, text in FILES.items() if AS_CODE.search(text)}
    assert found == {}
    addresses = {address for text in FILES.values() for address in ADDRESS.findall(text)}
    assert addresses <= {"http://www.w3.org"}


def test_scripts_import_only_each_other() -> None:
    imported = {name: set(re.findall(r'from "\./([\w.]+)"', text)) for name, text in SCRIPTS.items()}
    assert set().union(*imported.values()) <= SCRIPTS.keys()
    assert all(text.count(" from ") <= len(imported[name]) + text.count("// ") for name, text in SCRIPTS.items())
