"""A stand-in for Google Cloud Storage on loopback, with objects in memory: the part of its XML and JSON APIs that
obstore, deltalake and Hadoop's connector use. Preconditions on generations are those of Google's documentation."""
