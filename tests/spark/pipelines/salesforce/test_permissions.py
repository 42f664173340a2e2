"""Permissions of the integration user that are lost for a while."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Reconcile
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.users import Access
from tests.faults.worker import request
from tests.spark.pipelines.salesforce.pipeline import SalesforcePipeline, Writer

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.mark.nightly
@pytest.mark.parametrize("access", [Access.NONE, pytest.param(Access.OWN, marks=pytest.mark.nightly)])
def test_case_50_a_permission_that_is_lost_between_runs_deletes_nothing(
    copied: Callable[..., SalesforcePipeline], writer: Writer, org: SalesforceOrg, access: Access
) -> None:
    """A lost permission looks like a mass delete."""
    crm = copied("Account")
    before = crm.rows("Account")
    org.integration.access["Account"] = access
    request(crm.replicator(), CommandKind.RESYNC, {"tables": ["Account"], "key": "again"})
    dag_run = crm.run()
    assert not dag_run.green and crm.rows("Account") == before
    assert access is Access.NONE or any("SRC055" in line for line in dag_run.problems), dag_run.problems
    del org.integration.access["Account"]
    writer.transact(3)
    request(crm.replicator(), CommandKind.RESYNC, {"tables": ["Account"], "key": "once more"})
    crm.run_until_idle()
    assert crm.differences() == []


@pytest.mark.nightly
def test_changes_that_a_channel_omitted_for_want_of_a_permission_are_a_hole_when_it_is_granted_again(
    copied: Callable[..., SalesforcePipeline], writer: Writer, org: SalesforceOrg
) -> None:
    """The position of the channel passes them with the changes of the other objects."""
    crm = copied("Account", "Contact")
    crm.with_source(reconcile=Reconcile.MANUAL)
    org.integration.access["Account"] = Access.OWN
    for _ in range(2):
        writer.transact(6)
        dag_run = crm.run()
        assert not dag_run.green and any("SRC055" in line for line in dag_run.problems), dag_run.problems
    del org.integration.access["Account"]
    writer.transact(3)
    dag_run = crm.run()
    assert not dag_run.green and any("LOG004" in line for line in dag_run.problems), dag_run.problems
    request(crm.replicator(), CommandKind.RESYNC, {"tables": ["Account"], "key": "again"})
    crm.run_until_idle()
    assert crm.differences() == []
