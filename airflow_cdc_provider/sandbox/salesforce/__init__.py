"""A Salesforce org on loopback, for the demo and the tests: an independent reading of the protocols."""

from airflow_cdc_provider.sandbox.salesforce.org import SalesforceOrg

__all__ = ["SalesforceOrg"]
