"""Budgets from the outside: what the engines ran for a scope, at its price, against its budget.

The storm's own price is the same for every token, so that costs can be checked by hand. Reserved is
the dearest that a request may cost: with `max_tokens` nothing may pass the budget; without, a
request may by its own excess over what it reserved at least. What is not billable (what a killed
gateway was running) costs nothing.
"""

from storm.charges import above, certain_tokens, charges_of, engine_tokens
from storm.history import Finding, History, Row

MONTH_MS = 32 * 24 * 3_600_000


def check_spend(history: History) -> list[Finding]:
    """No scope's month cost more than its budget, and every record says what it cost."""
    found = []
    for scope, limit, rows in history.by_scope(history.budgets):
        price = history.prices[scope[0]]

        def amounts(row: Row, price: int = price) -> tuple[int, int]:
            in_the_end, at_first = certain_tokens(history, row)
            return price * in_the_end, price * at_first

        billable = [row for row in rows if row.billable]
        charges = charges_of(history, billable, amounts)
        found += list(above("spend", scope, limit, charges, window_ms=MONTH_MS))
    tenants = {tenant for tenant, _ in history.budgets}
    return found + [
        finding
        for row in history.rows
        if row.tenant in tenants
        for finding in _wrong_cost(history, row)
    ]


def _wrong_cost(history: History, row: Row) -> list[Finding]:
    tokens = engine_tokens(history, row) if row.engine_final else row.prompt_tokens
    owed = history.prices[row.tenant] * tokens if row.billable else 0
    if row.engine_final and row.cost_pico != owed:
        what = f"costs {row.cost_pico} pico, {owed} by the engine's count"
        return [Finding("cost", row.request_id, what)]
    if row.cost_pico is None:
        return [Finding("cost", row.request_id, "has no cost under a budget")]
    return []
