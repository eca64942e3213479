"""What is asked of an organization's usage in OpenAI's words, and the buckets that answer it.

Buckets begin at whole minutes, hours or days of UTC, the first where the time that is asked for
begins; the last ends where it does. Each is there, also where nothing was used.
"""

import base64
import binascii
import hashlib
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from billing.postgres.usage_sources import Chosen
from gateway.errors import InvalidRequest

WIDTHS_S = {"1m": 60, "1h": 3_600, "1d": 86_400}
_EARLIEST_S, _LATEST_S = 946_684_800, 4_102_444_800
_VALUES_MAX = 100
_VALUE_CHARACTERS_MAX = 200
_TRUE_OR_FALSE = {"true": True, "false": False}


class Limit(NamedTuple):
    """How many buckets a page has where nobody says how many, and at most."""

    usual: int
    most: int


@dataclass(frozen=True)
class Endpoint:
    """What one of the endpoints takes."""

    limits: Mapping[str, Limit]
    """By width of a bucket; the widths that there are."""
    groups: Collection[str]
    filters: Collection[str]
    """Of `api_key_ids`, `models`, `line_items`: lists that narrow what is counted."""
    takes_batch: bool = False


COMPLETIONS = Endpoint(
    limits={"1d": Limit(7, 31), "1h": Limit(24, 168), "1m": Limit(60, 1440)},
    groups=(
        "project_id", "user_id", "api_key_id", "model", "batch", "service_tier", "api_source",
    ),
    filters=("project_ids", "api_key_ids", "models"),
    takes_batch=True,
)  # fmt: skip
COSTS = Endpoint(
    limits={"1d": Limit(7, 180)},
    groups=("project_id", "user_id", "line_item", "api_key_id", "api_source"),
    filters=("project_ids", "api_key_ids", "line_items"),
)
_SINGLE = ("start_time", "end_time", "bucket_width", "limit", "page", "batch")


class Bucket(NamedTuple):
    """Unix seconds, the end not included."""

    start_s: int
    end_s: int


class BucketQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for. `position_s` is where this page begins, `until_s` where all of it ends;
    `lists` are the filters that were given."""

    since_s: int
    until_s: int
    position_s: int
    width: str
    limit: int
    group_by: tuple[str, ...]
    lists: dict[str, tuple[str, ...]]
    batch: bool | None
    digest: bytes

    @property
    def width_s(self) -> int:
        """Of a whole bucket."""
        return WIDTHS_S[self.width]

    @property
    def buckets(self) -> list[Bucket]:
        """Those of this page, without a gap."""
        found: list[Bucket] = []
        start_s = self.position_s
        while start_s < self.until_s and len(found) < self.limit:
            end_s = min(start_s - start_s % self.width_s + self.width_s, self.until_s)
            found.append(Bucket(start_s, end_s))
            start_s = end_s
        return found

    @property
    def next_page(self) -> str | None:
        """What asks for the page after this one; None at the end."""
        end_s = self.buckets[-1].end_s
        if end_s >= self.until_s:
            return None
        packed = struct.pack(">QQ8s", end_s, self.until_s, self.digest)
        return base64.urlsafe_b64encode(packed).decode()

    def chosen(self, tenants: Collection[str] | None) -> Chosen:
        """The records that this page is about."""
        request_class = None
        if self.batch is not None:
            request_class = "batch" if self.batch else "interactive"
        return Chosen(
            since=_instant(self.position_s),
            until=_instant(self.buckets[-1].end_s),
            tenants=None if tenants is None else sorted(tenants),
            api_keys=self.lists.get("api_key_ids"),
            models=self.lists.get("models"),
            request_class=request_class,
        )


def read_buckets(
    given: Iterable[tuple[str, str]], endpoint: Endpoint, *, now_s: int
) -> BucketQuery:
    """From an address's parameters; lists are given as `models=a&models=b` or with `models[]`, as
    SDKs do. Raises InvalidRequest, naming the parameter: one that is not known here would be an
    answer to another question."""
    values, lists = _sorted_out(given, endpoint)
    since_s = _seconds(values, "start_time")
    if since_s is None:
        raise InvalidRequest("start_time is needed, in Unix seconds", param="start_time")
    width = values.get("bucket_width", "1d")
    if width not in endpoint.limits:
        raise InvalidRequest(
            f"bucket_width must be one of {', '.join(endpoint.limits)}", param="bucket_width"
        )
    group_by = lists.pop("group_by", ())
    unknown = [name for name in group_by if name not in endpoint.groups]
    if unknown:
        raise InvalidRequest(
            f"group_by takes {', '.join(endpoint.groups)}, not {unknown[0][:40]!r}",
            param="group_by",
        )
    batch = _batch(values)
    asked = (since_s, values.get("end_time"), width, group_by, sorted(lists.items()), batch)
    digest = hashlib.sha256(msgspec.json.encode(asked)).digest()[:8]
    until_s = _seconds(values, "end_time")
    position_s = since_s
    if "page" in values:
        position_s, until_s = _read_page(values["page"], digest, since_s)
    elif until_s is None:
        until_s = now_s + 1
    if since_s >= until_s:
        raise InvalidRequest("start_time must be before end_time, or now", param="start_time")
    return BucketQuery(
        since_s=since_s,
        until_s=until_s,
        position_s=position_s,
        width=width,
        limit=_limit(values, endpoint.limits[width]),
        group_by=tuple(name for name in endpoint.groups if name in group_by),
        lists=lists,
        batch=batch,
        digest=digest,
    )


def _sorted_out(
    given: Iterable[tuple[str, str]], endpoint: Endpoint
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    values: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    single = [name for name in _SINGLE if name != "batch" or endpoint.takes_batch]
    for asked, value in given:
        name = asked.removesuffix("[]")
        if name in ("group_by", *endpoint.filters):
            lists.setdefault(name, []).append(value)
        elif asked not in single:
            raise _unknown(asked, (*single, "group_by", *endpoint.filters))
        elif name in values:
            raise InvalidRequest(f"{name} is given twice", param=name)
        else:
            values[name] = value
    for name, items in lists.items():
        if len(items) > _VALUES_MAX or max(map(len, items)) > _VALUE_CHARACTERS_MAX:
            raise InvalidRequest(
                f"{name} takes {_VALUES_MAX} values of {_VALUE_CHARACTERS_MAX} characters at most",
                param=name,
            )
        if any("\x00" in item for item in items):
            raise InvalidRequest(f"{name} holds what no name does", param=name)
    return values, {name: tuple(sorted(set(items))) for name, items in lists.items()}


def _unknown(asked: str, known: Collection[str]) -> InvalidRequest:
    name = asked.removesuffix("[]")[:40]
    if name == "user_ids":
        return InvalidRequest(
            "user_ids: a request is an API key's here, and no user's", param="user_ids"
        )
    return InvalidRequest(f"{name!r} is no parameter here: {', '.join(known)}", param=name)


def _seconds(values: Mapping[str, str], name: str) -> int | None:
    value = values.get(name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 11):
        raise InvalidRequest(f"{name} must be Unix seconds, a whole number", param=name)
    if not _EARLIEST_S <= int(value) <= _LATEST_S:
        raise InvalidRequest(f"{name} must be from 2000 to 2100, in Unix seconds", param=name)
    return int(value)


def _limit(values: Mapping[str, str], limit: Limit) -> int:
    value = values.get("limit", str(limit.usual))
    if not (value.isascii() and value.isdigit() and len(value) <= 5) or not (
        1 <= int(value) <= limit.most
    ):
        raise InvalidRequest(
            f"limit must be 1 to {limit.most} buckets of this width", param="limit"
        )
    return int(value)


def _batch(values: Mapping[str, str]) -> bool | None:
    value = values.get("batch")
    if value is not None and value.lower() not in _TRUE_OR_FALSE:
        raise InvalidRequest("batch must be true or false", param="batch")
    return None if value is None else _TRUE_OR_FALSE[value.lower()]


def _read_page(page: str, digest: bytes, since_s: int) -> tuple[int, int]:
    """Where a page begins, and where all of them end."""
    try:
        packed = base64.b64decode(page.encode("ascii"), altchars=b"-_", validate=True)
        position_s, until_s, of = struct.unpack(">QQ8s", packed)
    except (binascii.Error, UnicodeError, struct.error) as error:
        raise InvalidRequest("page must be next_page of an earlier answer", param="page") from error
    if of != digest:
        raise InvalidRequest(
            "page belongs to an answer to other parameters: only limit may be another", param="page"
        )
    if not since_s < position_s < until_s <= _LATEST_S:
        raise InvalidRequest("page must be next_page of an earlier answer", param="page")
    return position_s, until_s


def _instant(at_s: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at_s)


def starts(buckets: Iterable[Bucket], width_s: int) -> Iterator[tuple[int, Bucket]]:
    """Each bucket by where a whole one would begin, as sums name it."""
    for bucket in buckets:
        yield bucket.start_s - bucket.start_s % width_s, bucket
