"""Metrics of the gateway. Seconds and labels appear only here; elsewhere it is ms and values."""
