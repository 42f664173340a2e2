"""Files of Google Datastream: events of six kinds of sources in one envelope, as Avro or lines of JSON."""
