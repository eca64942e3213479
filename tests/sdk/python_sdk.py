"""OpenAI's Python SDK, unmodified, sync and async."""

import asyncio
import time
from functools import lru_cache
from typing import Any

import openai
from pydantic import BaseModel
from sdk.seen import Call, Json, Seen

TIMEOUT_S = 60.0


def call_sync(call: Call) -> Seen:
    """One call with `openai.OpenAI`."""
    client = _client(call.base_url, call.api_key, call.max_retries)
    answers: list[Json] = []
    headers: dict[str, str] = {}
    began = time.monotonic()
    try:
        raw = _endpoint(client, call)
        headers = dict(raw.headers)
        parsed = raw.parse()
        if call.fields.get("stream"):
            for chunk in parsed:
                answers.append(_plain(chunk))  # noqa: PERF401 - kept where the next one raises
        else:
            answers.append(_plain(parsed))
    except openai.APIError as error:
        return _raised(answers, headers, error, began)
    return Seen(answers, headers, None, time.monotonic() - began)


@lru_cache(maxsize=16)
def _client(base_url: str, api_key: str, max_retries: int) -> openai.OpenAI:
    """One client for many calls, as a user of the SDK has."""
    return openai.OpenAI(
        base_url=base_url, api_key=api_key, max_retries=max_retries, timeout=TIMEOUT_S
    )


def call_async(call: Call) -> Seen:
    """The same with `openai.AsyncOpenAI`, in an event loop of its own."""
    return asyncio.run(_call(call))


async def _call(call: Call) -> Seen:
    began = time.monotonic()
    async with openai.AsyncOpenAI(
        base_url=call.base_url,
        api_key=call.api_key,
        max_retries=call.max_retries,
        timeout=TIMEOUT_S,
    ) as client:
        answers: list[Json] = []
        headers: dict[str, str] = {}
        try:
            raw = await _endpoint(client, call)
            headers = dict(raw.headers)
            parsed = raw.parse()
            if call.fields.get("stream"):
                async for chunk in parsed:
                    answers.append(_plain(chunk))  # noqa: PERF401 - kept where the next one raises
            else:
                answers.append(_plain(parsed))
        except openai.APIError as error:
            return _raised(answers, headers, error, began)
        return Seen(answers, headers, None, time.monotonic() - began)


def _endpoint(client: Any, call: Call) -> Any:
    if call.kind == "chat":
        return client.chat.completions.with_raw_response.create(**call.fields)
    if call.kind == "completions":
        return client.completions.with_raw_response.create(**call.fields)
    if call.kind == "models":
        return client.models.with_raw_response.list()
    return client.models.with_raw_response.retrieve(call.fields["model"])


def _plain(answer: BaseModel) -> Json:
    """What the SDK's model holds, fields that it does not know included."""
    return answer.model_dump(exclude_unset=True, warnings=False)


def _raised(answers: list[Json], headers: Json, error: openai.APIError, began: float) -> Seen:
    if isinstance(error, openai.APIStatusError):
        headers = dict(error.response.headers)
    return Seen(answers, headers, _error(error), time.monotonic() - began)


def _error(error: openai.APIError) -> Json:
    return {
        "class": type(error).__name__,
        "classes": [base.__name__ for base in type(error).__mro__],
        "status": getattr(error, "status_code", None),
        "code": error.code,
        "type": error.type,
        "param": error.param,
        "message": error.message,
        "request_id": getattr(error, "request_id", None),
    }
