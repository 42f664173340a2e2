"""Links, paths, commands and definitions in the documentation."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from airflow.cli.cli_config import GroupCommand
from fastapi.routing import APIRoute

from airflow_cdc_provider.cli.commands import get_cli_commands
from airflow_cdc_provider.loader import load_text
from airflow_cdc_provider.ui.app import API, create_app

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT.glob("*.md"), (ROOT / "docs").rglob("*.md")) for path in path)
OTHER_ROUTES = {"POST /auth/token"}
"""Of Airflow."""
HISTORY = ROOT / "CHANGELOG.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMED_COMMAND = re.compile(r"`airflow cdc ([a-z][^`]*)`")
NAMED_ROUTE = re.compile(r"`((?:GET|POST) /[^`\s]*)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"`((?:airflow_cdc_provider|spark_jobs|tests|dags|docs|docker)/[\w./-]+|[a-z_]+/[\w/]+\.py)`")
REPLICATOR = {"name", "source", "target", "tables", "staging"}
WRITTEN_ON_A_PAGE = {"journal"}
"""Source types of the guide to writing a source; the test of that page installs them."""


def pages() -> list[object]:
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES]


def anchors(page: Path) -> set[str]:
    """The anchors of headings, as GitHub creates them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", one).lower()).replace(" ", "-")
        for one in headings
    }


@pytest.mark.parametrize("page", pages())
def test_every_link_leads_to_a_page_and_a_heading_of_it(page: Path) -> None:
    lost = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize("page", [page for page in pages() if page.values[0] != HISTORY])  # type: ignore[attr-defined]
def test_every_named_file_exists(page: Path) -> None:
    named = {name.rstrip("/") for name in PATH.findall(FENCE.sub("", page.read_text()))}
    assert [name for name in sorted(named) if not any((base / name).exists() for base in bases())] == []


def bases() -> Iterator[Path]:
    """Paths are relative to the checkout or to the package."""
    yield from (ROOT, ROOT / "airflow_cdc_provider")


def parser() -> argparse.ArgumentParser:
    """`airflow cdc` as Airflow builds it."""
    whole = argparse.ArgumentParser(prog="airflow cdc")
    (group,) = get_cli_commands()
    assert isinstance(group, GroupCommand)
    add(whole, group)
    return whole


def add(to: argparse.ArgumentParser, group: GroupCommand) -> None:
    into = to.add_subparsers(required=True)
    for command in group.subcommands:
        made = into.add_parser(command.name)
        if isinstance(command, GroupCommand):
            add(made, command)
        else:
            for argument in command.args:
                argument.add_to_parser(made)


def commands(page: Path) -> list[str]:
    blocks = [text for language, text in FENCE.findall(page.read_text()) if language in ("", "sh", "bash", "console")]
    lines = (line.removeprefix("$ ").strip() for text in blocks for line in text.splitlines())
    return [line for line in lines if line.startswith("airflow cdc ")]


@pytest.mark.parametrize("page", [page for page in pages() if commands(page.values[0])])  # type: ignore[attr-defined]
def test_every_command_is_valid(page: Path) -> None:
    for line in commands(page):
        words = shlex.split(line, comments=True)[2:]
        try:
            parser().parse_args(words)
        except SystemExit as error:
            pytest.fail(f"{line}: exit {error.code}")


@pytest.mark.parametrize("page", pages())
def test_every_named_subcommand_exists(page: Path) -> None:
    (whole,) = get_cli_commands()
    for text in NAMED_COMMAND.findall(page.read_text()):
        command, words = whole, text.split()
        while isinstance(command, GroupCommand) and words:
            by_name = {one.name: one for one in command.subcommands}
            assert words[0] in by_name, f"airflow cdc {text}"
            command = by_name[words.pop(0)]


def test_every_named_route_exists() -> None:
    routes = {
        f"{min(route.methods)} {placeholders(route.path.removeprefix(API))}"
        for route in create_app().routes
        if isinstance(route, APIRoute)
    }
    named = {placeholders(route) for page in PAGES for route in NAMED_ROUTE.findall(page.read_text())}
    assert named - routes - OTHER_ROUTES == set()


def placeholders(path: str) -> str:
    return re.sub(r"\{.*?\}", "{}", path)


def test_every_named_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        target
        for page in PAGES
        if page != HISTORY
        for target in re.findall(r"(?:`|^)make ([a-z]+)", page.read_text(), re.MULTILINE)
    }
    assert named - targets == set()


@pytest.mark.parametrize("page", pages())
def test_every_whole_definition_loads(page: Path) -> None:
    for language, text in FENCE.findall(page.read_text()):
        definition = yaml.safe_load(text) or {} if language == "yaml" else {}
        if definition.keys() >= REPLICATOR and definition["source"]["type"] not in WRITTEN_ON_A_PAGE:
            load_text(text.encode(), f"{definition['name']}.yaml")
