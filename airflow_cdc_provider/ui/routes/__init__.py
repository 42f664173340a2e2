"""The routes, by what they are about. Each one names its guard."""
