"""Message transports, one folder each: Kafka topics and folders of files. A decoder reads the messages."""
