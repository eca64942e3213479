"""What stands in the way of an invoice, and what to do about it, in words."""

from billing.domain.invoicing.issuing import Obstacle

ADVICE = {
    Obstacle.PERIOD_OPEN: "Wait until the month is over in the tenant's time zone.",
    Obstacle.NO_SELLER: "Say who sells, on the page Seller.",
    Obstacle.UNPRICED: "Set a price that holds for their time: they are rated within a minute.",
    Obstacle.NOT_FINAL: "Wait for the gateway that served them, or issue with a reason: what comes "
    "later is adjusted on the next invoice.",
    Obstacle.GATEWAY_BEHIND: "Wait until that gateway has shipped its journal, or issue with a "
    "reason.",
    Obstacle.STILL_OPEN: "Wait until these requests have ended, or issue with a reason.",
    Obstacle.UNBILLED: "Draft the invoice in the other currency too, or issue with a reason.",
    Obstacle.DEAD_LETTERS: "Look at them with weir dead-letters list, or issue with a reason.",
    Obstacle.NUMBER_GIVEN: "Issue the lost invoices again first, in their order. They are named "
    "by weir restore check.",
    Obstacle.ROLLUPS_DIFFER: "Nothing can be issued before it is known why: see Reconciliation.",
    Obstacle.LINES_DISAGREE: "Nothing can be issued before it is known why: see Reconciliation.",
}
"""What somebody at the console can do about each."""

STATUS_KINDS = {"draft": "plain", "issued": "busy", "paid": "good", "void": "plain"}
"""Of each status, how its badge looks."""


def advice_on(obstacle: str) -> str:
    """What to do about a blocker of that name."""
    return ADVICE[Obstacle(obstacle)]
