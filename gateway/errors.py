"""Every refusal and failure that reaches a client, as one tree of exceptions.

Each names its HTTP status, OpenAI's `type` and `code`, and how long to wait before trying again.
Messages are written for the tenant: they name limits and counts, never a prompt, a secret, a path
or another tenant.
"""

from collections.abc import Mapping, Sequence


class WeirError(Exception):
    """A failure with a defined answer. `message` is shown to the client as it is."""

    status: int = 500
    type: str = "server_error"
    code: str = "internal_error"
    may_help_again: bool = True
    """False tells SDKs not to repeat the request by themselves (`x-should-retry: false`)."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_ms = retry_after_ms
        self.headers: tuple[tuple[bytes, bytes], ...] = ()
        """More headers of the answer, such as the limits that a refusal met."""
        self.rests_on_tokens = False
        """Whether it might have been none for a request of fewer tokens."""
        if code is not None:
            self.code = code


class InvalidRequest(WeirError):
    """400: the request is malformed or can never be served."""

    status, type, code = 400, "invalid_request_error", "invalid_value"


class ContextLengthExceeded(InvalidRequest):
    """400: prompt plus maximum output does not fit the model's context."""

    code = "context_length_exceeded"


class UnsupportedParameter(InvalidRequest):
    """400: a field that Weir does not pass on."""

    code = "unsupported_parameter"


class InvalidApiKey(WeirError):
    """401: missing, wrong, revoked or expired key."""

    status, type, code = 401, "invalid_request_error", "invalid_api_key"


class PermissionDenied(WeirError):
    """403: the key's scopes do not cover this."""

    status, type, code = 403, "permission_error", "model_not_allowed"


class ModelNotFound(WeirError):
    """404: no such model."""

    status, type, code = 404, "invalid_request_error", "model_not_found"


class RequestTooLarge(WeirError):
    """413: the body or the headers are over the limit."""

    status, type, code = 413, "invalid_request_error", "request_too_large"


class LimitReached(WeirError):
    """429: one of the tenant's own limits. `type` says which kind: sequences, tokens, requests."""

    status, code = 429, "rate_limit_exceeded"

    of_key = False
    """Whether it is a limit of the API key alone: what others of its tenant do is nothing to it."""

    def __init__(self, message: str, *, kind: str, retry_after_ms: int) -> None:
        super().__init__(message, retry_after_ms=retry_after_ms)
        self.type = kind


class QuotaExceeded(WeirError):
    """429: the month's budget has no room. Repeating it soon does not help, so SDKs are told not
    to. `remaining_pico` is what the budget still has, in pico-units of
    the tenant's currency."""

    status, type, code = 429, "insufficient_quota", "insufficient_quota"
    may_help_again = False

    def __init__(
        self, message: str, *, remaining_pico: int = 0, retry_after_ms: int = 60_000
    ) -> None:
        super().__init__(message, retry_after_ms=min(retry_after_ms, 60_000))
        self.remaining_pico = remaining_pico


class Unpriced(WeirError):
    """503: a budget is in force and what the request may cost is not known: the model has no price.
    Ours to mend, so no 429; nothing that the tenant repeats soon helps."""

    status, type, code = 503, "overloaded_error", "admission_unavailable"
    may_help_again = False

    def __init__(self, message: str) -> None:
        super().__init__(message, param="model", retry_after_ms=60_000)


class Overloaded(WeirError):
    """503: ours. `code` is no_capacity, no_worker, admission_unavailable or
    metering_unavailable."""

    status, type, code = 503, "overloaded_error", "no_capacity"

    def __init__(self, message: str, *, code: str, retry_after_ms: int = 1000) -> None:
        super().__init__(message, code=code, retry_after_ms=retry_after_ms)


class WorkerFailed(WeirError):
    """502: the engine failed before the first byte."""

    status, type, code = 502, "upstream_error", "worker_failed"


class WorkerUnreachable(WorkerFailed):
    """502: no connection to the engine could be made, or it was dropped before any answer."""


class HostedSendRefused(Overloaded):
    """503: no worker, and the tenant's data may not go to a hosted provider (any more), or whether
    it may is not known well enough."""

    def __init__(self) -> None:
        super().__init__("no worker of this model is ready", code="no_worker")


class WorkerTimeout(WeirError):
    """504: the engine did not answer in time."""

    status, type, code = 504, "upstream_error", "worker_timeout"


class NotFound(WeirError):
    """404 outside `/v1`: no such tenant, key, worker."""

    status, type, code = 404, "not_found", "not_found"


class Conflict(WeirError):
    """409: it exists already, or changed meanwhile."""

    status, type, code = 409, "conflict", "conflict"


class IssueBlocked(Conflict):
    """409: an invoice is not issued now. `blockers` is everything that stands in the way."""

    code = "issue_blocked"

    def __init__(self, message: str, blockers: Sequence[Mapping[str, object]]) -> None:
        super().__init__(message)
        self.blockers = tuple(blockers)


class Unprocessable(WeirError):
    """422: well-formed, but it cannot be accepted."""

    status, type, code = 422, "unprocessable", "unprocessable"


class Unauthorized(WeirError):
    """401 outside `/v1`: no valid token."""

    status, type, code = 401, "unauthorized", "unauthorized"


class Forbidden(WeirError):
    """403 outside `/v1`: the role does not allow it."""

    status, type, code = 403, "forbidden", "forbidden"


class StoreUnavailable(WeirError):
    """503 outside `/v1`: Postgres or Redis cannot be reached, so nothing was changed."""

    status, type, code = 503, "store_unavailable", "store_unavailable"
