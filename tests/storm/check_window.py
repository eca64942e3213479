"""INV-3 from the outside: tokens and requests in every trailing 60 s, by admission instant."""

from storm.charges import above, certain_tokens, charges_of, within
from storm.history import Finding, History, Scope

MINUTE_MS = 60_000


def check_tokens(history: History) -> list[Finding]:
    """No trailing minute has more tokens than TPM, but for a request's own excess."""
    found = []
    for scope, limit, rows in history.by_scope(history.tokens):
        charges = charges_of(history, rows, lambda row: certain_tokens(history, row))
        found += list(above("tokens", scope, limit, charges, window_ms=MINUTE_MS))
    return found


def check_requests(history: History) -> list[Finding]:
    """No trailing minute has more requests that ran than RPM."""
    found = []
    for scope, limit, rows in history.by_scope(history.requests):
        charges = charges_of(history, rows, lambda row: (1, 1))
        found += list(above("requests", scope, limit, charges, window_ms=MINUTE_MS))
    return found


def most_in_a_minute(history: History, scope: Scope) -> int:
    """The most tokens that certainly fell into one trailing minute of a scope."""
    rows = [row for row in history.rows if scope in row.scopes]
    charges = charges_of(history, rows, lambda row: certain_tokens(history, row))
    minutes = (within(charges, first.earliest_ms, MINUTE_MS) for first in charges)
    return max((sum(charge.amount for charge in minute) for minute in minutes), default=0)
