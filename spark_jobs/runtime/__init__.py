"""Around every job: its step, its Spark session, its progress, its errors."""
