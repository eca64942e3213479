"""The waiting room of a gateway: a place on a worker before anything is sent, for all who ask."""
