"""The gateway's own durable account of what it admitted and how that ended."""

from gateway.adapters.journal.identity import JournalUnusable
from gateway.adapters.journal.journal import Journal, Recovered

__all__ = ["Journal", "JournalUnusable", "Recovered"]
