"""The body of a load test's request."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from backend.loadtest.plan import PlannedRequest

Messages = Sequence[Mapping[str, str]]


def chat_bodies(
    model: str,
    messages_of: Callable[[PlannedRequest], Messages],
    *,
    min_tokens: bool,
    flex: bool,
) -> Callable[[PlannedRequest], bytes]:
    """Makes streamed chat completions that report their usage.

    Args:
        min_tokens: ask for no fewer tokens than planned: SGLang's and Weir's field, which others
            refuse. Without it an answer may end before its planned length.
        flex: batch requests ask for Weir's batch class by `service_tier`.
    """

    def body(request: PlannedRequest) -> bytes:
        fields: dict[str, object] = {
            "model": model,
            "messages": messages_of(request),
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": request.output_tokens,
        }
        if min_tokens:
            fields["min_tokens"] = request.output_tokens
        if flex and request.traffic_class == "batch":
            fields["service_tier"] = "flex"
        return msgspec.json.encode(fields)

    return body
