"""What an answer must be, whatever was asked."""

import json
from collections import Counter
from typing import Any

from fuzz.cases import CHAT, COMPLETION, Case
from fuzz.corpus import CANARY, SECRET
from fuzz.wire_client import Reply
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from referencing import Registry
from referencing.jsonschema import DRAFT202012

DOCUMENT = "urn:weir:openapi"
ERROR_BYTES_MAX = 8_192
PROBLEM_FIELDS = {"type", "title", "status", "detail", "code"}


class Judge:
    """Looks at every answer; counts outcomes."""

    def __init__(self, document: Any) -> None:
        self._document = document
        resource = DRAFT202012.create_resource(document)
        self._registry: Registry[Any] = Registry().with_resource(DOCUMENT, resource)
        self._validators: dict[tuple[str, str, int], Draft202012Validator] = {}
        self.outcomes: Counter[str] = Counter()

    def faults(self, case: Case, reply: Reply) -> list[str]:
        """What is wrong with the answer; nothing where all is well."""
        faults = [] if reply.complete else ["the answer was cut off"]
        if reply.status >= 500:
            faults.append(f"a {reply.status}: {reply.body[:300]!r}")
        shown = reply.body + repr(reply.headers).encode()
        if SECRET.encode() in shown:
            faults.append("the answer shows a secret")
        if reply.status >= 400:
            if len(reply.body) > ERROR_BYTES_MAX:
                faults.append(f"an error of {len(reply.body)} bytes")
            if CANARY.encode() in shown:
                faults.append("the error shows the prompt")
            code, found = self._error(case, reply)
            faults += found
        else:
            code = "ok"
            faults += self._success(case, reply)
        self.outcomes[f"{case.kind} {reply.status} {code}"] += 1
        faults += self._undocumented(case, reply)
        return faults

    def _error(self, case: Case, reply: Reply) -> tuple[str, list[str]]:
        if case.method == "HEAD":
            return "head", []
        tenants = case.target.lstrip("/").startswith("v1") or not case.well_framed
        media_type = "application/json" if tenants else "application/problem+json"
        if reply.headers.get("content-type", "").split(";")[0] != media_type:
            # What is no HTTP is answered in OpenAI's shape, before any path is known.
            if reply.headers.get("content-type") != "application/json" or reply.status != 400:
                return "?", [f"content-type {reply.headers.get('content-type')}"]
            tenants = True
        try:
            body = json.loads(reply.body)
        except ValueError:
            return "?", [f"no JSON: {reply.body[:200]!r}"]
        return self._openai(reply, body) if tenants else self._problem(reply, body)

    def _openai(self, reply: Reply, body: Any) -> tuple[str, list[str]]:
        error = body.get("error") if isinstance(body, dict) else None
        if not isinstance(error, dict) or set(error) != {"message", "type", "param", "code"}:
            return "?", [f"no error object: {reply.body[:200]!r}"]
        faults = []
        if not all(
            isinstance(error[name], str) and error[name] for name in ("message", "type", "code")
        ):
            faults.append(f"error fields: {reply.body[:200]!r}")
        if len(reply.headers.get("x-request-id", "")) != 36:
            faults.append("no x-request-id")
        if reply.status in (429, 503) and not 1 <= int(reply.headers.get("retry-after", 0)) <= 60:
            faults.append("no retry-after")
        return str(error["code"]), faults

    def _problem(self, reply: Reply, body: Any) -> tuple[str, list[str]]:
        if not isinstance(body, dict) or set(body) - {"param", "blockers"} != PROBLEM_FIELDS:
            return "?", [f"no problem: {reply.body[:200]!r}"]
        faults = [] if body["status"] == reply.status else ["the problem names another status"]
        return str(body["code"]), faults

    def _success(self, case: Case, reply: Reply) -> list[str]:
        kind = reply.headers.get("content-type", "").split(";")[0]
        if kind == "text/event-stream":
            return _stream_faults(reply)
        if case.method == "HEAD" or kind != "application/json" or case.operation is None:
            return []
        try:
            body = json.loads(reply.body)
        except ValueError:
            return [f"no JSON: {reply.body[:200]!r}"]
        validator = self._validator(case.operation, case.method.lower(), reply.status)
        if validator is None:
            return []
        return [
            f"not as documented: {e.json_path} {e.message[:200]}"
            for e in validator.iter_errors(body)
        ]

    def _validator(self, path: str, method: str, status: int) -> Draft202012Validator | None:
        operation = self._document["paths"].get(path, {}).get(method)
        if operation is None:
            return None
        key = (path, method, status)
        if key not in self._validators:
            content = operation["responses"].get(str(status), {}).get("content", {})
            if "application/json" not in content:
                return None
            where = path.replace("~", "~0").replace("/", "~1")
            pointer = f"{DOCUMENT}#/paths/{where}/{method}/responses/{status}/content"
            self._validators[key] = Draft202012Validator(
                {"$ref": pointer + "/application~1json/schema"}, registry=self._registry
            )
        return self._validators[key]

    def _undocumented(self, case: Case, reply: Reply) -> list[str]:
        operation = self._document["paths"].get(case.operation or "", {}).get(case.method.lower())
        if operation is None or not case.well_framed or str(reply.status) in operation["responses"]:
            return []
        return [f"status {reply.status} is not documented for {case.method} {case.operation}"]


def _stream_faults(reply: Reply) -> list[str]:
    events = [part for part in reply.body.decode("utf-8", "replace").split("\n\n") if part]
    if not events or events[-1] != "data: [DONE]":
        return [f"the stream ends with {events[-1][:300] if events else 'nothing'}"]
    for event in events[:-1]:
        if event.startswith(":"):
            continue
        try:
            json.loads(event.removeprefix("data: "))
        except ValueError:
            return [f"an event is no JSON: {event[:200]}"]
    return []


def is_completion(case: Case) -> bool:
    """Whether the case asks for a completion."""
    return case.method == "POST" and case.target in (CHAT, COMPLETION)
