"""Histories made up by hand, to see the checks fail."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from storm.history import LOST, Call, Change, History, InForce, Limits, Rest, Row, Span

TENANT, KEY, MODEL = "acme", "key-1", "m"
PRICE = 10
"""Pico-units a token."""
ALL = (TENANT, "tenant")


def fixed(limit: int) -> Limits:
    """A limit of the tenant that never changes."""
    return {ALL: InForce((Change(0, 0, limit),))}


def edited(before: int, after: int, *, sent_ms: int, everywhere_ms: int) -> Limits:
    """A limit of the tenant that was changed once."""
    return {ALL: InForce((Change(0, 0, before), Change(sent_ms, everywhere_ms, after)))}


@dataclass
class MadeUp:
    """A history that grows request by request."""

    spans: list[Span] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def ran(
        self,
        arrived_ms: int,
        ended_ms: int,
        *,
        admitted_within_ms: int = 0,
        sequences: int = 1,
        prompt: int = 10,
        output: int = 20,
        maximum: int | None = 20,
        key: str = KEY,
        outcome: str = "completed",
        settled_ms: int | None = None,
    ) -> str:
        """One request that an engine ran from its arrival there until `ended_ms`. Its id."""
        request_id = f"{len(self.rows):032x}"
        started_ms = arrived_ms + admitted_within_ms
        self.spans += [
            Span(request_id, started_ms, started_ms, ended_ms, prompt, output)
            for _ in range(sequences)
        ]
        self.rows.append(
            Row(
                request_id, TENANT, key, MODEL, arrived_ms,
                ended_ms if settled_ms is None else settled_ms,
                outcome, prompt, output * sequences, sequences,
                billable=outcome != LOST,
                cost_pico=0 if outcome == LOST else PRICE * (prompt + output * sequences),
            )
        )  # fmt: skip
        self.calls.append(
            Call(
                TENANT, arrived_ms, ended_ms, 200, request_id, whole=outcome == "completed",
                maximum=maximum, sequences=sequences,
            )
        )  # fmt: skip
        return request_id

    def history(
        self,
        *,
        sequences: Limits | None = None,
        tokens: Limits | None = None,
        requests: Limits | None = None,
        budgets: Limits | None = None,
        kills: Sequence[int] = (),
        rest: Rest | None = None,
    ) -> History:
        """All of it, under these limits."""
        return History(
            spans=self.spans,
            rows=self.rows,
            calls=self.calls,
            sequences=sequences or {},
            tokens=tokens or {},
            requests=requests or {},
            budgets=budgets or {},
            prices={TENANT: PRICE},
            kills=kills,
            rest=rest or Rest(zero_after_ms=0),
        )
