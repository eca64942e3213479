"""One run as text: every figure with its unit, and SIMULATED where it is."""

from collections.abc import Iterable

from backend.loadtest.measure import GoodputTargets
from backend.loadtest.summary import Attainment, Fleet, Group, Rows, Summary, Target
from backend.loadtest.table import ABSENT, Facts, Table, milliseconds, number, percent

GROUP_HEADER = (
    "requests",
    "sent",
    "finished",
    "attainment %",
    "goodput rps",
    "TTFT p50 ms",
    "p95",
    "p99",
    "TPOT p50 ms",
    "p95",
    "p99",
    "ITL p50 ms",
    "p99",
    "max",
    "E2E p50 ms",
    "p95",
    "p99",
)


def run_facts(summary: Summary) -> Facts:
    """All that is shown of a run."""
    tables = [Table("", GROUP_HEADER, [_group(group) for group in _groups(summary)])]
    if summary.fleet.workers:
        tables.append(_fleet(summary.fleet))
    return Facts(
        heading=heading(summary.target),
        notices=[f"REFUSED: {reason}" for reason in summary.refusals] + summary.warnings,
        lines=_lines(summary),
        tables=tables,
    )


def heading(target: Target) -> str:
    """What was tested, and whether its figures are simulated."""
    return f"{provenance(target)}: {target.description}"


def provenance(target: Target) -> str:
    """Where figures come from, in a few words that go with every one of them."""
    if target.simulated is None:
        return "Load test (the target does not say whether it is simulated)"
    if not target.simulated:
        return "Load test"
    speed = "" if target.clock_speed == 1 else f", clock x {target.clock_speed:g}"
    return f"SIMULATED (profile {target.step_times or 'unknown'}{speed})"


def targets_text(targets: GoodputTargets) -> str:
    """What a request must meet."""
    under = targets.prompt_tokens_under
    which = "" if under is None else f" for prompts under {under:,} tokens"
    return f"TTFT {targets.ttft_ms:g} ms{which}, TPOT {targets.tpot_ms:g} ms"


def _lines(summary: Summary) -> list[tuple[str, str]]:
    load, tokens, hit, generator = (
        summary.load,
        summary.tokens,
        summary.hit_rate,
        summary.generator,
    )
    window = f"{load.window_ms / 1000:,.1f} s after a warm-up of {load.warmup_ms / 1000:,.1f} s"
    reported = ABSENT if hit.window_share is None else f"{percent(hit.window_share)} %"
    whole = ABSENT if hit.run_share is None else f"{percent(hit.run_share)} %"
    lines = [
        ("workload", f"{load.workload}, {load.arrivals}, seed {load.seed}"),
        ("sha256", load.workload_sha256),
        ("window", f"{window}: {summary.all.sent:,} of {load.requests:,} requests"),
        ("rate", f"{load.offered_rps:,.2f} rps offered, {load.achieved_rps:,.2f} rps achieved"),
        ("in flight", f"{load.in_flight_mean:,.1f} mean, {load.in_flight_max:,} most"),
        ("targets", targets_text(summary.all.goodput.targets)),
        ("goodput", _attained(summary.all.goodput)),
        ("other reading", _reading(_other(summary))),
        (
            "tokens",
            (
                f"{tokens.input_tokens_per_s:,.0f} input tok/s, "
                f"{tokens.cached_tokens_per_s:,.0f} of them cached, "
                f"{tokens.output_tokens_per_s:,.0f} output tok/s"
                + (" (answers that did not say: by events)" if tokens.counted_by_events else "")
            ),
        ),
        (
            "hit rate",
            (
                f"{reported} in the window, {whole} of the whole run, ideal "
                f"{percent(hit.ideal_share)} %"
            ),
        ),
        ("ends", _counted(summary.ends)),
        (
            "generator",
            (
                f"send lag {generator.send_lag_p50_ms:,.2f} ms p50, "
                f"{generator.send_lag_p99_ms:,.2f} ms p99; loop lag "
                f"{generator.loop_lag_p99_ms:,.2f} ms p99; "
                f"{percent(generator.cpu_share)} % of a core"
            ),
        ),
        ("queue", _queue(summary)),
    ]
    if summary.error_codes:
        lines.append(("error codes", _counted(summary.error_codes)))
    if summary.fleet.retracted is not None:
        lines.append(("retractions", f"{summary.fleet.retracted:,} requests"))
    if summary.rows is not None:
        lines.append(("rows", rows_text(summary.rows)))
    return lines


def rows_text(rows: Rows) -> str:
    """The billing check in one sentence."""
    if not rows.match:
        return f"MISMATCH: {rows.written:,} rows, {rows.begun:,} requests finished" + _open(rows)
    if rows.written == rows.begun:
        return f"rows {rows.written:,} = requests finished {rows.begun:,}"
    return f"rows {rows.written:,}, requests finished {rows.begun:,}" + _open(rows)


def _open(rows: Rows) -> str:
    return f", {rows.undecided:,} failed before an answer" if rows.undecided else ""


def _attained(found: Attainment) -> str:
    return (
        f"{found.goodput_rps:,.2f} rps, attainment {percent(found.attainment_share)} % of sent "
        f"(TTFT {percent(found.ttft_met_share)} %, TPOT {percent(found.tpot_met_share)} %)"
    )


def _other(summary: Summary) -> Attainment:
    """By the reading of the TTFT target that was not asked for."""
    if summary.all.goodput.targets.prompt_tokens_under is None:
        return summary.ttft_for_short_prompts
    return summary.ttft_for_every_prompt


def _reading(found: Attainment) -> str:
    share = f"attainment {percent(found.attainment_share)} %"
    return f"{targets_text(found.targets)}: {found.goodput_rps:,.2f} rps, {share}"


def _queue(summary: Summary) -> str:
    """Of each class, where there are several: which one it is decides."""
    if len(summary.by_class) < 2:
        return _grows(summary.queue_grows)
    return "; ".join(f"{group.name} {_grows(group.queue_grows)}" for group in summary.by_class)


def _grows(grows: bool) -> str:
    return "GROWS: no steady state" if grows else "does not grow"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "none"


def _groups(summary: Summary) -> Iterable[Group]:
    yield summary.all
    yield from summary.by_class
    yield summary.short_prompts
    if len(summary.by_tenant) > 1:
        yield from summary.by_tenant


def _group(group: Group) -> list[str]:
    goodput, ttft, tpot, itl, e2e = group.goodput, group.ttft, group.tpot, group.itl, group.e2e
    latencies = [
        *(_three(ttft.p50_ms, ttft.p95_ms, ttft.p99_ms) if ttft else [ABSENT] * 3),
        *(_three(tpot.p50_ms, tpot.p95_ms, tpot.p99_ms) if tpot else [ABSENT] * 3),
        *(_three(itl.p50_ms, itl.p99_ms, itl.max_ms) if itl else [ABSENT] * 3),
        *(_three(e2e.p50_ms, e2e.p95_ms, e2e.p99_ms) if e2e else [ABSENT] * 3),
    ]
    attained = percent(goodput.attainment_share) if group.sent else ABSENT
    return [
        group.name,
        f"{group.sent:,}",
        f"{group.finished:,}",
        attained,
        number(goodput.goodput_rps, 2),
        *latencies,
    ]


def _three(*values: float) -> list[str]:
    return [milliseconds(value) for value in values]


def _fleet(fleet: Fleet) -> Table:
    header = (
        "worker",
        "running mean",
        "max",
        "waiting mean",
        "max",
        "queued tokens mean",
        "max",
        "KV used % mean",
        "max",
        "samples",
    )
    rows = [
        (
            load.worker,
            number(load.running_mean),
            f"{load.running_max:,}",
            number(load.waiting_mean),
            f"{load.waiting_max:,}",
            number(load.waiting_tokens_mean, 0),
            f"{load.waiting_tokens_max:,}",
            percent(load.kv_used_mean_share),
            percent(load.kv_used_max_share),
            f"{load.samples:,}",
        )
        for load in fleet.workers
    ]
    spread = (
        f"Workers: the means differ by {fleet.running_spread:,.1f} running requests and "
        f"{fleet.kv_used_spread_share * 100:.1f} points of KV"
    )
    return Table(spread if len(rows) > 1 else "", header, rows)
