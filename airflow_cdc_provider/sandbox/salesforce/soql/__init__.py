"""The part of SOQL that the sandbox understands, and no more: anything else is refused as malformed."""
