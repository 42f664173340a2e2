"""Salesforce objects, polled by the time of the last change over the REST and Bulk API, without events."""
