"""Messages whose schemas are in a schema registry."""
