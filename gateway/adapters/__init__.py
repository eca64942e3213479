"""Adapters: what implements the ports of `gateway.serving` on Redis, Postgres, disk and HTTP."""
