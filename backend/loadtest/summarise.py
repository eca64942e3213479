"""A run → its summary. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from backend.loadtest.doubts import warnings
from backend.loadtest.fleet import fleet, rows
from backend.loadtest.generator_guard import send_lags_ms, verdict
from backend.loadtest.measure import (
    SHORT_PROMPT_TOKENS,
    GoodputTargets,
    e2e_ms,
    finished,
    good,
    met_tpot,
    met_ttft,
    tpot_ms,
    ttft_ms,
)
from backend.loadtest.percentiles import (
    Percentiles,
    distribution,
    nearest_rank,
    ordered_percentiles,
    percentiles,
)
from backend.loadtest.run import Outcome, Run
from backend.loadtest.steady import (
    Flow,
    Window,
    flow,
    queue_grows,
    sent_within,
    steady_window,
    unfinished,
    waits_grow,
)
from backend.loadtest.summary import (
    Attainment,
    Generator,
    Group,
    Load,
    Summary,
    Target,
)
from backend.loadtest.token_figures import hit_rate, tokens

TOP_TENANTS = 10


def summarise(
    run: Run,
    targets: GoodputTargets | None = None,
    warmup_ms: float = 0.0,
    top_tenants: int = TOP_TENANTS,
) -> Summary:
    """All that a run says.

    Raises:
        ValueError: the warm-up leaves nothing of the schedule.
    """
    targets = targets or GoodputTargets()
    window = steady_window(run, warmup_ms)
    sent = sent_within(run, window)
    flowed = flow(run.outcomes, window)
    under = targets.prompt_tokens_under or SHORT_PROMPT_TOKENS
    gaps = sorted(_gaps(sent))
    tenants = Counter(outcome.planned.tenant for outcome in sent)
    found = Summary(
        target=Target(
            description=run.target.description,
            simulated=run.target.simulated,
            clock_speed=run.target.clock_speed,
            step_times=run.target.step_times,
        ),
        load=_load(run, window, flowed),
        all=_group("all", sent, targets, window, ordered_percentiles(gaps)),
        by_class=_groups(
            sorted({o.planned.traffic_class for o in sent}, reverse=True),
            lambda o: o.planned.traffic_class,
            sent,
            targets,
            window,
        ),
        by_tenant=_groups(
            [name for name, _ in sorted(tenants.items(), key=_most_first)[:top_tenants]],
            lambda o: o.planned.tenant,
            sent,
            targets,
            window,
        ),
        short_prompts=_group(
            f"prompts under {under:,} tokens",
            [o for o in sent if o.planned.prompt_tokens < under],
            targets,
            window,
        ),
        ttft_for_every_prompt=_attainment(
            sent, msgspec.structs.replace(targets, prompt_tokens_under=None), window
        ),
        ttft_for_short_prompts=_attainment(
            sent, msgspec.structs.replace(targets, prompt_tokens_under=under), window
        ),
        tokens=tokens(run, sent, flowed),
        hit_rate=hit_rate(run, sent),
        ends=dict(Counter(o.end for o in sent).most_common()),
        error_codes=dict(Counter(o.code for o in sent if o.code is not None).most_common()),
        fleet=fleet(run, window),
        rows=rows(run),
        generator=_generator(run),
        queue_grows=queue_grows(run, warmup_ms),
        itl_distribution_ms=distribution(gaps),
        warnings=[],
        refusals=_refusals(run, sent, targets, window),
    )
    return msgspec.structs.replace(found, warnings=warnings(found))


def _refusals(run: Run, sent: list[Outcome], targets: GoodputTargets, window: Window) -> list[str]:
    reasons = [reason] if (reason := verdict(run, targets, window)) else []
    if not sent and run.stopped_at_ms is not None:
        reasons.append("no request of the time after the warm-up had ended when it was interrupted")
    elif not sent:
        reasons.append("no request was planned for the time after the warm-up")
    return reasons


def _most_first(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _load(run: Run, window: Window, flowed: Flow) -> Load:
    workload = run.workload
    due = [outcome for outcome in run.outcomes if window.holds(outcome.planned.send_at_ms)]
    return Load(
        workload=workload.name,
        workload_sha256=workload.sha256,
        seed=workload.seed,
        arrivals=workload.arrivals,
        requests=len(run.outcomes),
        duration_ms=workload.duration_ms,
        warmup_ms=window.start_ms,
        window_ms=window.end_ms - window.start_ms,
        offered_rps=len(due) / window.seconds,
        achieved_rps=flowed.ended_rps,
        in_flight_mean=flowed.in_flight_mean,
        in_flight_max=flowed.in_flight_max,
        stopped_at_ms=run.stopped_at_ms,
        unfinished=sum(unfinished(run, outcome) for outcome in due),
    )


def _groups(
    names: Iterable[str],
    key: Callable[[Outcome], str],
    sent: list[Outcome],
    targets: GoodputTargets,
    window: Window,
) -> list[Group]:
    members: dict[str, list[Outcome]] = {}
    for outcome in sent:
        members.setdefault(key(outcome), []).append(outcome)
    return [_group(name, members[name], targets, window) for name in names]


def _group(
    name: str,
    sent: list[Outcome],
    targets: GoodputTargets,
    window: Window,
    itl: Percentiles | None = None,
) -> Group:
    whole = [outcome for outcome in sent if finished(outcome)]
    return Group(
        name=name,
        sent=len(sent),
        finished=len(whole),
        finished_rps=len(whole) / window.seconds,
        goodput=_attainment(sent, targets, window),
        ttft=_of(whole, ttft_ms),
        tpot=_of(whole, tpot_ms),
        itl=itl or percentiles(_gaps(whole)),
        e2e=_of(whole, e2e_ms),
        queue_grows=waits_grow(sent, window),
    )


def _of(outcomes: list[Outcome], measure: Callable[[Outcome], float | None]) -> Percentiles | None:
    return percentiles(value for o in outcomes if (value := measure(o)) is not None)


def _gaps(outcomes: list[Outcome]) -> Iterable[float]:
    return (gap for outcome in outcomes if finished(outcome) for gap in outcome.gaps_ms)


def _attainment(sent: list[Outcome], targets: GoodputTargets, window: Window) -> Attainment:
    met = sum(good(outcome, targets) for outcome in sent)
    whole = [outcome for outcome in sent if finished(outcome)]
    count = len(sent) or 1
    return Attainment(
        targets=targets,
        good=met,
        attainment_share=met / count,
        goodput_rps=met / window.seconds,
        ttft_met_share=sum(met_ttft(outcome, targets) for outcome in whole) / count,
        tpot_met_share=sum(met_tpot(outcome, targets) for outcome in whole) / count,
    )


def _generator(run: Run) -> Generator:
    """Over the whole run: a late warm-up also moves what follows."""
    lags = send_lags_ms(run) or [0.0]
    return Generator(
        send_lag_p50_ms=nearest_rank(lags, 50),
        send_lag_p99_ms=nearest_rank(lags, 99),
        send_lag_max_ms=lags[-1],
        loop_lag_p99_ms=run.generator_loop_lag_p99_ms,
        cpu_share=run.generator_cpu_share,
    )
