"""The gateway: admits, routes, streams and records inference requests.

Owns tenants, API keys, limits, admission and the journal of what was used.
Does not own prices, invoices or anything computed from them (`billing`), nor engines (`backend`).
"""
