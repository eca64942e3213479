"""Billing: what a usage record is, and everything that is computed from usage records.

Never imports `gateway`.
"""
