"""Usage that nobody had, written for a demonstration: what it is called wherever it is shown."""

from billing.domain.usage_record import UsageFlag

SIMULATED = UsageFlag.SIMULATED.value
"""Flags each such usage record."""
SIMULATED_NOTE = "Contains simulated usage."
"""On each invoice that has one of them, and on its credit notes."""
