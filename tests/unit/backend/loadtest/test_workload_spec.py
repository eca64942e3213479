"""What cannot be meant is refused in one line, before anything is read or drawn."""

from pathlib import Path

import pytest

from backend.loadtest.arrivals import GammaGaps, OnOff
from backend.loadtest.lengths import Lengths
from backend.loadtest.workload_error import WorkloadError
from backend.loadtest.workload_spec import WorkloadSpec

TRACE = Path("t.jsonl")
NAN = float("nan")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            WorkloadSpec("poisson", duration_s=10, rate_rps=0),
            "the rate is 0 requests per second; it must be above 0",
        ),
        (WorkloadSpec("poisson", duration_s=10, rate_rps=-1), "it must be above 0"),
        (WorkloadSpec("poisson", duration_s=10, rate_rps=NAN), "the rate is nan"),
        (WorkloadSpec("poisson", duration_s=float("inf"), rate_rps=1), "the duration is inf s"),
        (
            WorkloadSpec("poisson", duration_s=0, rate_rps=1),
            "the duration is 0 s; it must be above 0",
        ),
        (
            WorkloadSpec("poisson", duration_s=10, rate_rps=1, tenants=0),
            "at least 1, at most 100000",
        ),
        (
            WorkloadSpec("poisson", duration_s=10, rate_rps=1, batch_share=1.1),
            "the batch share is 1.1",
        ),
        (
            WorkloadSpec("poisson", duration_s=10, rate_rps=1, max_input_tokens=0),
            "the longest prompt is 0 tokens",
        ),
        (
            WorkloadSpec("poisson", duration_s=3600, rate_rps=1e6),
            "3600000000 requests; one run has at most 2000000",
        ),
        (WorkloadSpec("poisson", duration_s=10), "a poisson workload needs a rate"),
        (WorkloadSpec("bursts", rate_rps=1), "a bursts workload needs a duration"),
        (
            WorkloadSpec("poisson", duration_s=10, rate_rps=1, path=TRACE),
            "a poisson workload takes no trace",
        ),
        (WorkloadSpec("poisson", duration_s=10, rate_rps=1, start_s=5), "takes no start"),
        (
            WorkloadSpec("poisson", duration_s=10, rate_rps=1, keep_gaps=True),
            "takes no choice of gaps",
        ),
        (
            WorkloadSpec("poisson", duration_s=10, rate_rps=1, bursts=GammaGaps(2)),
            "takes no bursts",
        ),
        (
            WorkloadSpec("bursts", duration_s=10, rate_rps=1, bursts=OnOff(2, 5, 6)),
            "no whole cycle of bursts",
        ),
        (WorkloadSpec("seedlike"), "a seedlike workload needs a trace"),
        (WorkloadSpec("seedlike", path=TRACE, start_s=-1), "the start is -1 s"),
        (WorkloadSpec("seedlike", path=TRACE, tenants=4), "takes no number of tenants"),
        (WorkloadSpec("seedlike", path=TRACE, batch_share=0.1), "takes no batch share"),
        (WorkloadSpec("seedlike", path=TRACE, keep_gaps=True), "choice of gaps without a rate"),
        (
            WorkloadSpec("mooncake", path=TRACE, suffix_lengths=Lengths.fixed(1)),
            "a mooncake workload takes no lengths of suffixes",
        ),
    ],
)
def test_nonsense_is_refused(spec: WorkloadSpec, said: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        spec.check()
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_can_be_meant_is_let_pass() -> None:
    WorkloadSpec("poisson", duration_s=10, rate_rps=1).check()
    WorkloadSpec("bursts", duration_s=60, rate_rps=1, bursts=OnOff(4, 10, 50)).check()
    WorkloadSpec("seedlike", path=TRACE).check()
    WorkloadSpec(
        "seedlike", duration_s=10, rate_rps=8, path=TRACE, keep_gaps=True, start_s=60
    ).check()
    WorkloadSpec("mooncake", duration_s=10, path=TRACE, tenants=40, batch_share=0.3).check()
