"""Objects of a Salesforce org, polled by the time of their last change: no events, only the REST and Bulk API."""
