"""The REST API, one resource per module. A handler gets the org, the request, the user and parts of the path."""
