"""Google Datastream's files: events of six kinds of sources in one envelope, as Avro or as lines of JSON."""
