"""Decoders of event formats, one folder each: messages in, change records out. Pure."""
