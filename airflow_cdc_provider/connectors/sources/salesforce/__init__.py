"""Salesforce: change events over the Pub/Sub API, copies over Bulk API 2.0, single records over REST."""
