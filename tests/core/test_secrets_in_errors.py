"""Texts of unexpected errors contain no secret of a connection."""

from __future__ import annotations

import json

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from spark_jobs.runtime.failures import problem_of, scrub

KEY = {"private_key": "-----BEGIN-----\nAAAAsecret\nBBBBsecret\n", "client_email": "cdc@example.org"}


@pytest.mark.parametrize("value", [KEY, json.dumps(KEY)], ids=["object", "text"])
def test_the_lines_of_a_key_inside_a_key_file_are_replaced(value: object) -> None:
    secrets = Secrets(staging=ConnectionInfo("g", extra={"keyfile_dict": value}))
    text = scrub(f"no key AAAAsecret, nor {KEY['private_key']!r}, nor BBBBsecret", secrets)
    assert "secret" not in text and text.startswith("no key ***, nor ")


def test_a_password_and_a_token_are_replaced_in_the_problem_of_a_step() -> None:
    secrets = Secrets(target=ConnectionInfo("a", password="hunter22", extra={"sas_token": "sv=1&sig=abc"}))
    problem = problem_of(ValueError("hunter22 and sv=1&sig=abc"), secrets)
    assert "hunter22" not in problem.found and "sig=abc" not in problem.found
