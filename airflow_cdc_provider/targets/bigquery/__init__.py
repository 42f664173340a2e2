"""BigQuery as a target: tables in one dataset; data, cursor and fence in one script, which is one job."""
