"""An open loop against any OpenAI-compatible URL: no request waits for another.

Each is sent at the instant that the schedule fixed beforehand, whatever became of the others, and
its latency counts from that instant (no coordinated omission: the rule is wrk2's). It runs on any
event loop; on uvloop an event costs the least.
"""

from collections.abc import Callable, Mapping

from backend.loadtest.http_connection import (
    Address,
    Connections,
    address_of,
    allow_open_files,
)
from backend.loadtest.load_samples import LoadSampler
from backend.loadtest.open_loop import OpenLoop, no_collections
from backend.loadtest.plan import PlannedRequest, Workload
from backend.loadtest.progress import Counts
from backend.loadtest.request_bytes import RequestBytes
from backend.loadtest.run import Run, TargetFacts, WorkerSample


class HttpTarget:
    """A URL to send workloads to.

    Args:
        url: with or without `/v1` at its end.
        facts: what it is; its `clock_speed` divides the schedule and multiplies what is measured.
        body_of: the JSON of a request.
        api_key_of: its bearer token, None for none.
        request_timeout_s: after the intended send, in the target's time; what has no end by then
            is `timeout`, and its connection is closed.
        workers: URLs by worker id, whose loads are sampled once a second of the target's time.
        connections: makes those of a run; others than the default may lead elsewhere too.

    Raises:
        ValueError: the URL is none.
    """

    def __init__(
        self,
        url: str,
        facts: TargetFacts,
        *,
        body_of: Callable[[PlannedRequest], bytes],
        api_key_of: Callable[[PlannedRequest], str | None] = lambda _: None,
        request_timeout_s: float = 600.0,
        workers: Mapping[str, str] | None = None,
        connections: Callable[[Address], Connections] = Connections,
    ) -> None:
        self._connections = connections
        self._address = address_of(url)
        self._facts = facts
        self._body_of = body_of
        self._api_key_of = api_key_of
        self._timeout_ms = request_timeout_s * 1000
        self._workers = workers or {}

    async def run(
        self, workload: Workload, on_progress: Callable[[Counts], None] = lambda _: None
    ) -> Run:
        """Send it all and wait for every end. One Outcome a request, in the workload's order.

        A cancel (Ctrl-C under `asyncio.run` is one) ends the run early and is not raised: the Run
        says when. Of what is unfinished then, streams that had begun are `cut`, the rest is
        `timeout`.

        Raises:
            ValueError: an API key that no header can carry.
        """
        allow_open_files()
        requests = sorted(workload.requests, key=lambda request: request.send_at_ms)
        made = RequestBytes(
            requests, self._address, body_of=self._body_of, api_key_of=self._api_key_of
        )
        with no_collections():
            loop = OpenLoop(
                requests, made, self._connections(self._address),
                speed=self._facts.clock_speed, duration_ms=workload.duration_ms,
                timeout_ms=self._timeout_ms, on_progress=on_progress,
            )  # fmt: skip
            samples: list[WorkerSample] = []
            sampler = LoadSampler(self._workers, loop.clock, samples.append)
            async with sampler.running():
                await loop.run()
        by_plan = {id(flight.outcome.planned): flight.outcome for flight in loop.flights}
        return Run(
            workload=workload,
            target=self._facts,
            outcomes=[by_plan[id(request)] for request in workload.requests],
            samples=samples,
            generator_cpu_share=loop.costs.cpu_share,
            generator_loop_lag_p99_ms=loop.costs.lag_p99_ms,
            stopped_at_ms=loop.stopped_at_ms,
        )
