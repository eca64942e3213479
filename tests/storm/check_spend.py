"""Budgets from the outside: what a scope's records of the month cost, against its budget.

Reserved is the dearest that a request may cost, so with `max_tokens` nothing may pass the budget.
Without, the last requests admitted may each cost more than they reserved, by their own excess.
"""

from storm.history import NO_LIMIT, Finding, History, shown


def check_spend(history: History) -> list[Finding]:
    """No scope's month cost more than its budget."""
    found = []
    for scope, limit, rows in history.by_scope(history.budgets):
        budget = limit.most(0, history.began_ms + 10**12)
        unpriced = [row.request_id for row in rows if row.cost_pico is None]
        if unpriced:
            found.append(Finding("unpriced", shown(scope), f"{len(unpriced)} records have no cost"))
        spent = sum(row.cost_pico or 0 for row in rows)
        excess = sum(
            history.largest_pico.get(row.tenant, 0) for row in rows if not history.has_maximum(row)
        )
        if budget != NO_LIMIT and spent > budget + excess:
            what = f"{spent} pico spent, budget {budget:.0f}, own excess at most {excess}"
            found.append(Finding("spend", shown(scope), what))
    return found
