"""INV-1, INV-5 and INV-6 after a storm: one record for each admitted request, whatever was killed,
with the engine's counts; and at rest nothing is held."""

from collections import Counter
from collections.abc import Iterator

from storm.charges import engine_tokens
from storm.check_sequences import unaccounted
from storm.history import LOST, Finding, History, Row

LAST_WORDS_MS = 2_000
NEVER_THERE = frozenset({"left", "ClientConnectorError"})
"""Errors of calls that no kill broke off: the client's own, and of a gateway that was away."""
PROMPT_OVER = 512
"""Tokens that a prompt may be taken for beyond the longest one, before an engine has counted it."""


def check_books(history: History) -> list[Finding]:
    """Records against engines and clients."""
    return [
        *_doubles(history),
        *_missing(history),
        *_never_admitted(history),
        *(finding for row in history.rows for finding in _counts(history, row)),
    ]


def check_rest(history: History) -> list[Finding]:
    """Within one lease time after the last answer nothing is held, and the windows hold what ran:
    actual tokens in place of reserved ones, and the month what the records cost."""
    rest, found = history.rest, []
    if rest.zero_after_ms is None or rest.zero_after_ms > history.lease_ms:
        what = f"still held after {history.lease_ms} ms: {list(rest.left)}"
        found.append(Finding("rest", "store", what))
    for tenant, counted in rest.window_tokens.items():
        rows = [row for row in history.rows if row.tenant == tenant]
        lost = [row for row in rows if row.outcome == LOST or unsettled(history, row)]
        kept = [row for row in rows if row not in lost]
        least = sum(row.prompt_tokens + row.output_tokens for row in kept)
        most = sum(engine_tokens(history, row) for row in kept)
        kept_most = broken_off(history, tenant)
        if counted < least or (not lost and counted > most + kept_most):
            what = f"the store counts {counted} tokens, engines {most}, {len(lost)} were lost"
            found.append(Finding("window", tenant, what))
    for tenant, spent in rest.spent_pico.items():
        costs = sum(row.cost_pico or 0 for row in history.rows if row.tenant == tenant)
        if spent != costs:
            what = f"the store says {spent} pico were spent, the records {costs}"
            found.append(Finding("spent", tenant, what))
    return found


def unsettled(history: History, row: Row) -> bool:
    """Whether a gateway may have been killed between record and settlement: what was reserved stays
    charged then. Its client was not answered, and it ended shortly before the kill."""
    call = history.call_of.get(row.request_id)
    answered = call is not None and call.whole
    ended_ms = [kill_ms - row.ended_ms for kill_ms in history.kills]
    return not answered and any(0 <= before_ms < LAST_WORDS_MS for before_ms in ended_ms)


def broken_off(history: History, tenant: str) -> float:
    """The most that the store may still count of requests whose gateway was killed after it had
    admitted them there and before its journal had them: they have no record, were never forwarded,
    and keep their reservation for its minute."""
    longest = max((row.prompt_tokens for row in history.rows), default=0) + PROMPT_OVER
    return sum(
        longest * call.prompts + call.maximum * call.sequences if call.maximum else float("inf")
        for call in history.calls
        if call.tenant == tenant
        and call.request_id is None
        and call.status is None
        and call.error not in NEVER_THERE
        and any(call.sent_ms <= kill_ms <= call.ended_ms for kill_ms in history.kills)
    )


def _doubles(history: History) -> Iterator[Finding]:
    for request_id, count in Counter(row.request_id for row in history.rows).items():
        if count > 1:
            yield Finding("double", request_id, f"has {count} records")


def _missing(history: History) -> Iterator[Finding]:
    for request_id in sorted({span.request_id for span in unaccounted(history)}):
        yield Finding("missing", request_id, "an engine ran it and it has no record")
    for call in history.calls:
        if call.status == 200 and call.request_id not in history.row_of:
            yield Finding("missing", str(call.request_id), "was answered and has no record")


def _never_admitted(history: History) -> Iterator[Finding]:
    """What was refused by its limits consumed nothing and has no record (INV-4)."""
    for call in history.calls:
        if call.status == 429 and call.request_id in history.row_of:
            yield Finding("refused", str(call.request_id), "was over its limit and has a record")


def _counts(history: History, row: Row) -> Iterator[Finding]:
    spans = history.spans_of.get(row.request_id, [])
    call = history.call_of.get(row.request_id)
    output = sum(span.output_tokens for span in spans)
    if row.outcome == "completed" and len(spans) != row.sequences:
        what = f"{row.sequences} sequences recorded, {len(spans)} run"
        yield Finding("counts", row.request_id, what)
    if row.outcome == "completed" and row.engine_final and row.output_tokens != output:
        what = f"{row.output_tokens} output tokens recorded, {output} run"
        yield Finding("counts", row.request_id, what)
    if row.output_tokens > output:
        what = f"{row.output_tokens} output tokens recorded, only {output} run"
        yield Finding("counts", row.request_id, what)
    prompts = {span.prompt_tokens for span in spans} | {sum(s.prompt_tokens for s in spans)}
    if row.outcome == "completed" and row.prompt_tokens not in prompts:
        what = f"{row.prompt_tokens} prompt tokens recorded, {sorted(prompts)} run"
        yield Finding("counts", row.request_id, what)
    if call is not None and call.whole and row.outcome != "completed":
        yield Finding("counts", row.request_id, f"was answered whole and is {row.outcome}")
    if row.outcome == LOST and history.killed_after(row) is None:
        yield Finding("lost", row.request_id, "is gateway_lost, and no gateway was killed then")
