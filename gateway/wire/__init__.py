"""OpenAI's HTTP contract as values: bodies, events, errors. Pure: no sockets, no clock."""
