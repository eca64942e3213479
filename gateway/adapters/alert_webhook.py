"""Alerts as signed HTTP requests, in the form of Standard Webhooks, which receivers' libraries
know: `webhook-id`, `webhook-timestamp`, `webhook-signature`."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable

import aiohttp
import msgspec

from billing.domain.budget_alert import BudgetAlert
from gateway.domain.budgets import alert_view
from gateway.domain.instants import ms_of, shown

SECRET_PREFIX = "whsec_"  # noqa: S105 - the visible part of secrets in base64
TIMEOUT_S = 10.0


class NotTaken(Exception):
    """The receiver did not take it; the message says neither where it is nor what was sent."""


def key_of(secret: str) -> bytes:
    """The key that a secret stands for: `whsec_` and base64, or any other text as it is. Raises
    ValueError."""
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret[len(SECRET_PREFIX) :], validate=True)
    except binascii.Error as error:
        raise ValueError("no base64 follows whsec_") from error


def body_of(alert: BudgetAlert) -> bytes:
    """What is sent, each time the same bytes."""
    view = {name: value for name, value in alert_view(alert).items() if name != "delivered_at"}
    event = {"type": "budget.alert", "timestamp": shown(ms_of(alert.noticed_at)), "data": view}
    return msgspec.json.encode(event)


def signature_of(key: bytes, message_id: str, at_s: int, body: bytes) -> str:
    """`v1,` and the HMAC-SHA256 of id, time and body."""
    signed = b".".join((message_id.encode(), str(at_s).encode(), body))
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


class Webhook:
    """One receiver. Redirects are not followed: a signed alert goes nowhere else."""

    def __init__(self, url: str, secret: str, *, now_s: Callable[[], int]) -> None:
        self._url = url
        self._key = key_of(secret) if secret else None
        self._now_s = now_s

    async def send(self, alert: BudgetAlert) -> None:
        """Hand one over. Raises NotTaken for anything but an answer of 200 to 299 in time."""
        body, at_s = body_of(alert), self._now_s()
        message_id = f"budget_alert_{alert.id}"
        headers = {
            "content-type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(at_s),
        }
        if self._key is not None:
            headers["webhook-signature"] = signature_of(self._key, message_id, at_s, body)
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(
                    self._url, data=body, headers=headers, allow_redirects=False
                ) as answer,
            ):
                status = answer.status
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise NotTaken(type(error).__name__) from None
        if not 200 <= status < 300:
            raise NotTaken(f"status {status}")
