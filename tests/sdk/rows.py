"""The table of docs/sdks.md: what an SDK's user may ask, and what each engine makes of it.

A row is data. The tests of both SDKs and the document are made of the same rows. `run_row` needs
no fixture: it runs a row on whatever answers at a base URL.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from sdk.checks import ASKED_TOKENS, Check, answered
from sdk.python_sdk import call_sync
from sdk.seen import Call, Caller, Json, Kind, Seen

EngineName = Literal["local", "simulated", "sglang"]
Form = Literal["whole", "stream"]
NOT_SENT = "503 `no_worker`, unless it is set down as understanding the field"
"""A hosted provider is never sent what it may drop."""
ENGINES: tuple[EngineName, ...] = ("local", "simulated", "sglang")
BOTH: tuple[Form, ...] = ("whole", "stream")
BASE: Json = {"max_tokens": ASKED_TOKENS, "temperature": 0}
"""Of every row that says nothing else. A model that samples may end any text at any token."""
CHAT: Json = {"messages": [{"role": "user", "content": "Rivers?"}]}
TEXT: Json = {"prompt": "The river"}


@dataclass(frozen=True)
class Passes:
    """It is served, and its effect is there. `check` replaces the row's own for this engine."""

    note: str = ""
    check: Check | None = None


@dataclass(frozen=True)
class NoEffect:
    """It is served, and the engine does nothing with it: only the answer is checked."""

    note: str


@dataclass(frozen=True)
class Refused:
    """The SDK raises; `param` names the field."""

    param: str | None = None
    code: str = "unsupported_parameter"
    status: int = 400
    note: str = ""


Outcome = Passes | NoEffect | Refused


@dataclass(frozen=True)
class Row:
    """One thing that an SDK's user may ask. Every field but `name` and `shows` has a default."""

    name: str
    shows: str
    """The line of the document."""
    fields: Json = field(default_factory=dict)
    """The SDK's arguments, beyond a model, a prompt and `BASE`; None leaves one out."""
    local: Outcome = Passes()
    simulated: Outcome = Passes()
    sglang: Outcome = Passes()
    hosted: str = "as the provider"
    """The document's word on a hosted provider."""
    check: Check = answered
    kind: Kind = "chat"
    forms: tuple[Form, ...] = BOTH
    variants: tuple[Json, ...] = ({},)
    """A call for each: what differs from `fields` in it."""

    def forms_on(self, engine: EngineName) -> tuple[Form, ...]:
        """The forms that the tests run: on a model on this CPU one of them, by turns."""
        if engine != "local":
            return self.forms
        return (self.forms[len(self.name) % len(self.forms)],)

    def outcome(self, engine: EngineName) -> Outcome:
        """What is expected of an engine."""
        found: Outcome = getattr(self, engine)
        return found

    def calls(
        self, engine: EngineName, form: Form, base_url: str, api_key: str, model: str
    ) -> list[Call]:
        """The row's calls, one a variant; where it is refused, one."""
        if self.kind in ("models", "model"):
            named = {"model": model} if self.kind == "model" else {}
            return [Call(self.kind, named, base_url, api_key)]
        prompt = CHAT if self.kind == "chat" else TEXT
        made = []
        refused = isinstance(self.outcome(engine), Refused)
        for variant in self.variants[:1] if refused else self.variants:
            fields = {"model": model, **BASE, **prompt, **self.fields}
            if form == "stream":
                fields = {"stream": True, "stream_options": {"include_usage": True}} | fields
            given = {name: value for name, value in (fields | variant).items() if value is not None}
            made.append(Call(self.kind, given, base_url, api_key))
        return made


def assert_refused(seen: Seen, refused: Refused) -> None:
    """The SDK raised what the contract says, and nothing else came."""
    assert seen.answers == []
    error = seen.error
    assert error is not None, "it was not refused"
    said = (error["status"], error["code"], error["param"])
    assert said == (refused.status, refused.code, refused.param), error
    assert error["type"] == "invalid_request_error"
    assert error["message"]
    assert len(error["request_id"]) == 36


def check_row(row: Row, seen: Sequence[Seen], engine: EngineName) -> None:
    """Whether what the row's calls gave is what is expected of the engine."""
    outcome = row.outcome(engine)
    if isinstance(outcome, Refused):
        for each in seen:
            assert_refused(each, outcome)
        return
    assert [each.error for each in seen] == [None] * len(seen)
    check = answered if isinstance(outcome, NoEffect) else outcome.check or row.check
    check(seen)


def run_row(
    row: Row,
    base_url: str,
    api_key: str,
    model: str,
    engine_name: EngineName,
    *,
    forms: Sequence[Form] | None = None,
    caller: Caller = call_sync,
) -> None:
    """Run a row in each of its forms (or those given) and assert what is expected of the engine.

    `base_url` ends in `/v1`. `caller` is the SDK: `python_sdk.call_sync` unless given.
    """
    for form in row.forms if forms is None else forms:
        calls = row.calls(engine_name, form, base_url, api_key, model)
        check_row(row, [caller(call) for call in calls], engine_name)
