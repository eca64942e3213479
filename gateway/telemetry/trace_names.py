"""The names of spans, and of all that is said of each: a closed list. Nothing else leaves a gateway
in a trace, so nothing of a prompt, an answer, a key or an engine's own words can.

`gen_ai.*`, `http.*`, `url.*`, `server.*` and `error.type` are OpenTelemetry's semantic conventions;
`weir.*` are ours, in the words of usage records.
"""

OPERATION, ATTEMPT = "request", "attempt"
"""Of the table only: on the wire they are named as the conventions want it, `POST <route>` and
`<operation> <model>`."""
AUTHENTICATE, READ, ESTIMATE, ADMIT = "authenticate", "read", "estimate", "admit"
WORKER_WAIT, PLACE, PARKED = "wait for a worker", "place", "parked"
LEASE, JOURNAL = "lease", "journal"
STREAM, ROUTE, COUNT, RECORD, SETTLE = "stream", "route", "count", "record", "settle"

_REFUSABLE = {"error.type", "weir.limit.kind"}
_MODEL = {"gen_ai.operation.name", "gen_ai.request.model"}
_ANSWER = {
    "gen_ai.provider.name", "gen_ai.request.max_tokens", "gen_ai.request.stream",
    "gen_ai.response.finish_reasons", "gen_ai.response.model", "gen_ai.usage.input_tokens",
    "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.output_tokens",
    "gen_ai.usage.reasoning.output_tokens", "weir.outcome",
}  # fmt: skip

SPANS: dict[str, frozenset[str]] = {
    OPERATION: frozenset(
        {
            "http.request.method", "http.response.status_code", "http.route", "url.path",
            "url.scheme", "gen_ai.request.choice.count", "weir.request_id", "weir.tenant.id",
            "weir.key.id", "weir.request.class", "weir.billable", "weir.attempts", "weir.queue_ms",
            "weir.ttft_ms", "weir.tpot_us", "weir.trace.kept",
        }
    ) | _MODEL | _ANSWER | _REFUSABLE,
    AUTHENTICATE: frozenset({"weir.tenant.id", "weir.key.id", "error.type"}),
    READ: frozenset({"weir.request.class", "error.type"}) | _MODEL,
    WORKER_WAIT: frozenset({"error.type"}),
    ESTIMATE: frozenset(
        {
            "weir.estimate.prompt_tokens", "weir.estimate.output_tokens", "weir.estimate.counted",
            "error.type",
        }
    ),
    ADMIT: frozenset({"weir.queue_ms", "weir.lease.sequences", "weir.lease.reserved_tokens"})
    | _REFUSABLE,
    PLACE: frozenset({"weir.queue_ms", "weir.worker.id"}) | _REFUSABLE,
    PARKED: frozenset({"weir.queue_ms", "weir.worker.id"}) | _REFUSABLE,
    LEASE: frozenset({"weir.lease.sequences", "weir.lease.reserved_tokens", "weir.lease.carried"})
    | _REFUSABLE,
    JOURNAL: frozenset({"error.type"}),
    STREAM: frozenset({"weir.outcome", "error.type"}),
    ROUTE: frozenset({"weir.route.tried", "weir.worker.id"}),
    ATTEMPT: frozenset(
        {
            "gen_ai.response.time_to_first_chunk", "server.address", "server.port",
            "weir.worker.id", "weir.attempt", "weir.choice", "error.type",
        }
    ) | _MODEL | _ANSWER,
    COUNT: frozenset({"weir.usage.source", "weir.usage.flags", "error.type"}),
    RECORD: frozenset({"error.type"}),
    SETTLE: frozenset({"error.type"}),
}  # fmt: skip
"""What each span may say."""
