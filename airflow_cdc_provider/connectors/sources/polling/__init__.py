"""Common parts of sources that are polled, interval by interval, for rows whose timestamp shows a change."""
