"""What each check of the reconciliation compares, for whoever reads it for the first time."""

from billing.domain.reconciliation.findings import Check

EXPLAINED = {
    Check.JOURNALS: "Every record that a gateway wrote into its journal has reached Postgres, once "
    "and unchanged.",
    Check.REQUESTS: "Every request that was admitted has ended or still runs: none was forgotten.",
    Check.ENGINES: "The tokens that engines counted themselves are those of the attempts that were "
    "recorded, but for what the terms account for.",
    Check.ROLLUPS: "The sums that usage pages and budgets read are those of the single records.",
    Check.INVOICES: "What invoices have is what their records add up to, each record on one at "
    "most.",
    Check.ATTEMPTS: "Of each answer one attempt is counted: nobody pays twice for a repeated one.",
    Check.REPLAY: "Shipping a journal once more would add nothing and change nothing.",
}
"""By check."""


def explained(check: str) -> str:
    """What the check of that name compares."""
    return EXPLAINED[Check(check)]
