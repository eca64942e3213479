"""Whether metering held: pure, from the accounts of a run to findings and itemised differences.

- Admitted requests and rows are the same requests, each once; nobody else's end is in a row.
- A row that says `engine_final` is what the engines' ledgers say, to the token.
- Any other row is at most that, unless its engine was killed before it could write its account;
  each such difference has a kind, and for its kind a reason that the run itself knows of.
- Request by request the kinds add up to the difference between engines and rows.
"""

from collections import Counter
from collections.abc import Iterator

from metering_run.accounts import Accounts, Ran, Row, Try, Verdict

EXACT = "engine_final"
LOST = "gateway_lost"
TAKEN_BACK = "taken_back"
SLACK_MS = 3_000
"""What a disturbance did may be seen so much later, by clocks and timers."""
REAPED = "reaped"
REFUSED_BEFORE = frozenset({"metering_unavailable", "admission_unavailable"})
"""Codes of answers that promise that nothing was admitted."""
ALWAYS_A_LOWER_BOUND = frozenset({"client_cancelled", "worker_failed", "timed_out", LOST})
"""Outcomes of which nobody promises the engine's last word. Of the others somebody must have been
disturbed."""


def judge(accounts: Accounts) -> Verdict:
    """Everything that must not be, and every difference that may."""
    verdict = Verdict()
    _books(accounts, verdict)
    _clients(accounts, verdict)
    for request_id in sorted({*accounts.row_of, *accounts.ran_of}):
        row = accounts.row_of.get(request_id)
        if row is None:
            tokens = sum(each.output for each in accounts.ran_of[request_id].values())
            verdict.find("unrecorded", request_id, f"an engine ran {tokens} tokens, and no row")
            continue
        _sums(accounts, row, verdict)
        if row.source == EXACT:
            _exact(accounts, row, verdict)
    return verdict


def _books(accounts: Accounts, verdict: Verdict) -> None:
    """Journals against rows."""
    for request_id, count in Counter(row.request_id for row in accounts.rows).items():
        if count > 1:
            verdict.find("double", request_id, f"has {count} rows")
    for request_id, count in accounts.admitted.items():
        if count > 1:
            verdict.find("admitted", request_id, f"was admitted {count} times")
        if request_id not in accounts.row_of:
            verdict.find("missing", request_id, "was admitted and has no row")
    for row in accounts.rows:
        _origin(accounts, row, verdict)
    if accounts.dead_letters:
        verdict.find("dead_letters", "Postgres", f"{accounts.dead_letters} lie there")
    if accounts.missing:
        verdict.find("numbers", "journals", f"{accounts.missing} are said to be lost")


def _origin(accounts: Accounts, row: Row, verdict: Verdict) -> None:
    """Where a row comes from, and whether it says what was said there."""
    told = accounts.ended.get(row.request_id, ())
    if row.request_id not in accounts.admitted:
        if row.by_journal or row.output or row.outcome != LOST:
            verdict.find("invented", row.request_id, "has a row, and was never admitted")
        else:
            verdict.explain("admission_not_durable", 0)
    elif not row.by_journal and REAPED not in row.flags:
        if any(
            each.kind == "disk" and each.met(row.ended_ms, row.ended_ms, SLACK_MS)
            for each in accounts.disturbances
        ):
            verdict.explain("sent_directly", 0)
        else:
            verdict.find("placeless", row.request_id, "has a row of no journal and of no reaper")
    if told and not any(_same(row, each) for each in told):
        said = "; ".join(f"{each.outcome} {each.prompt}+{each.output}" for each in told)
        what = f"is {row.outcome} {row.prompt}+{row.output}, its journal says {said}"
        verdict.find("altered", row.request_id, what)
    if not row.final and REAPED not in row.flags:
        verdict.find("provisional", row.request_id, "is not final, and no reaper wrote it")
    if not row.final and told:
        verdict.find("provisional", row.request_id, "is not final, and its journal is known")


def _same(row: Row, told: Row) -> bool:
    mine = (row.outcome, row.source, row.prompt, row.cached, row.output, row.sequences)
    theirs = (told.outcome, told.source, told.prompt, told.cached, told.output, told.sequences)
    return mine == theirs


def _clients(accounts: Accounts, verdict: Verdict) -> None:
    """What clients saw against rows."""
    for asked in accounts.asked:
        if asked.request_id is None:
            continue
        row = accounts.row_of.get(asked.request_id)
        if asked.status == 200 and row is None:
            verdict.find("missing", asked.request_id, "was answered and has no row")
        if row is None:
            continue
        if asked.error in REFUSED_BEFORE or asked.status == 429:
            verdict.find("refused", asked.request_id, f"was told {asked.error}, and has a row")
        if asked.whole and row.outcome != "completed":
            verdict.find("outcome", row.request_id, f"was answered whole and is {row.outcome}")
        if asked.whole and asked.usage is not None and asked.usage != (row.prompt, row.output):
            what = f"the client was told {asked.usage}, the row is {row.prompt}+{row.output}"
            verdict.find("told", row.request_id, what)


def _counted(tries: list[Try]) -> list[Try]:
    """The last of each choice; none where that gave its place back."""
    last: dict[int, Try] = {}
    for each in sorted(tries, key=lambda each: each.attempt):
        last[each.choice] = each
    return [each for each in last.values() if each.outcome != TAKEN_BACK]


def _sums(accounts: Accounts, row: Row, verdict: Verdict) -> None:
    """The output of a request: engines' account minus the row's, explained to the token."""
    ran = accounts.ran_of.get(row.request_id, {})
    tries = accounts.tries_of.get(row.request_id, {})
    difference = sum(each.output for each in ran.values()) - row.output
    if not tries and row.outcome == LOST:
        if difference < 0:
            what = f"it was lost with {row.output} tokens, engines ran {difference + row.output}"
            if not ran and _any_engine_killed(accounts):
                verdict.explain("engine_killed", difference)
            else:
                verdict.find("over", row.request_id, what)
        elif difference:
            verdict.explain(LOST, difference)
        return
    counted = {each.key for each in _counted(list(tries.values()))}
    explained = 0
    for key, tried in tries.items():
        found = ran.get(key)
        if key in counted:
            explained += _counted_one(accounts, tried, found, verdict)
        elif found is not None:
            name = TAKEN_BACK if tried.outcome == TAKEN_BACK else "tried_elsewhere"
            explained += verdict.explain(name, found.output)
    for key, found in ran.items():
        if key not in tries:
            what = f"attempt {key[2]} of choice {key[1]} ran {found.output} tokens, and no row"
            verdict.find("unrecorded", row.request_id, what)
            explained += found.output
    if explained != difference:
        what = f"engines ran {difference} tokens more than its row says, explained {explained}"
        verdict.find("unexplained", row.request_id, what)


def _counted_one(accounts: Accounts, tried: Try, ran: Ran | None, verdict: Verdict) -> int:
    """An attempt that is in its row; returns by how much the engine's account is above it."""
    if ran is None:
        if not tried.output:
            return 0
        if _disturbed(accounts, tried, "kill"):
            return verdict.explain("engine_killed", -tried.output)
        what = f"attempt {tried.attempt} has {tried.output} tokens of which no engine knows"
        verdict.find("unwitnessed", tried.request_id, what)
        return -tried.output
    more = ran.output - tried.output
    if tried.source == EXACT and more:
        what = f"attempt {tried.attempt} says {tried.output} tokens, its engine {ran.output}"
        verdict.find("tokens", tried.request_id, what)
    elif more < 0:
        what = f"{tried.output} tokens are {tried.source}, its engine ran {ran.output}"
        verdict.find("over", tried.request_id, what)
    elif tried.source != EXACT:
        if tried.outcome not in ALWAYS_A_LOWER_BOUND and not _disturbed(accounts, tried):
            what = f"is {tried.outcome} and {tried.source}, and nothing had happened to its worker"
            verdict.find("unsaid", tried.request_id, what)
        verdict.explain(f"lower_bound of {tried.outcome}", more)
    return more


def _disturbed(accounts: Accounts, tried: Try, *kinds: str) -> bool:
    """Whether the run did something of that kind, or any, to the worker meanwhile."""
    return any(
        each.target == tried.worker
        and (not kinds or each.kind in kinds)
        and each.met(tried.started_ms, tried.ended_ms, SLACK_MS)
        for each in accounts.disturbances
    )


def _any_engine_killed(accounts: Accounts) -> bool:
    return any(
        each.kind == "kill" and each.target.startswith("worker-") for each in accounts.disturbances
    )


def _exact(accounts: Accounts, row: Row, verdict: Verdict) -> None:
    """A row that says that it is the engines' own count, against their ledgers."""
    ran = accounts.ran_of.get(row.request_id, {})
    tries = _counted(list(accounts.tries_of.get(row.request_id, {}).values()))
    entries = [ran[each.key] for each in tries if each.key in ran]
    output = sum(each.output for each in entries)
    prompts = set(_prompts(entries, accounts, row))
    if row.outcome == "refused":  # by the engine: zero, whatever it began
        output, prompts = 0, {0}
    if row.outcome == LOST and not tries:
        return  # what a gateway knew of one that it lost is a lower bound, whoever said it
    if row.output != output or row.prompt not in prompts:
        what = f"says {row.prompt}+{row.output}, the ledgers {sorted(prompts)}+{output}"
        verdict.find("tokens", row.request_id, what)
    elif row.outcome != "refused" and row.sequences == 1 and not _same_cached(entries, row):
        # Cached tokens are in the closing usage alone; where that did not come, none are known.
        is_said = "cached_unknown" in row.flags
        if row.cached == 0 and is_said and any(_disturbed(accounts, each) for each in tries):
            verdict.explain("cached_not_told", 0)
        else:
            told = [each.cached for each in entries]
            what = f"says {row.cached} cached tokens, the ledger {told}"
            verdict.find("tokens", row.request_id, what)
    else:
        verdict.exact += 1


def _same_cached(entries: list[Ran], row: Row) -> bool:
    return row.cached == sum(each.cached for each in entries)


def _prompts(entries: list[Ran], accounts: Accounts, row: Row) -> Iterator[int]:
    """What its prompts have: each counts once for all of its choices. Where the client never saw
    the request's id it is not known which choices share a prompt: then all ways that there are."""
    asked = accounts.asked_of.get(row.request_id)
    sizes = range(1, row.sequences + 1) if asked is None else (asked.choices,)
    for size in sizes:
        if row.sequences % size == 0:
            longest: dict[int, int] = {}
            for each in entries:
                prompt = each.choice // size
                longest[prompt] = max(longest.get(prompt, 0), each.prompt)
            yield sum(longest.values())
