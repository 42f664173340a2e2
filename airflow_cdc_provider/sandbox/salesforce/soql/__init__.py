"""The part of SOQL that the sandbox supports. Any other query is rejected as malformed."""
