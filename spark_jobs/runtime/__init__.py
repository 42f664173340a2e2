"""What every job uses: its step, its Spark session, its progress, its errors."""
