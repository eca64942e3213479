"""The straight line: authenticate, estimate, admit, route, stream, record, settle.

Owns the order of these steps and what is held between them. Does not own any store, socket or rule:
those are ports, adapters and `gateway.domain`.
"""
