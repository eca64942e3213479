"""What metering costs: the journal, shipping, catching up after an outage, and a request's wait."""
