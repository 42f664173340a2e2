"""A stand-in for Google Cloud Storage on loopback: the part of its XML and JSON APIs that obstore, deltalake and Hadoop's
connector use, over objects in memory. Preconditions on generations are those of Google's documentation."""
