"""What a restart of `weir dev` keeps of a provider that an administrator changed since."""

from pathlib import Path

from hosted_examples import PRICE, a_provider
from msgspec.structs import replace

from gateway.dev_hosted_record import (
    Registered,
    as_left,
    first_registered,
    read_record,
    write_record,
)
from gateway.domain.hosted import HostedModel, HostedProvider

WANTED = a_provider(api_key="from-the-variable")
FIRST = first_registered(WANTED)
ELSEWHERE = "https://elsewhere.example/v1"


def restarted(
    stored: HostedProvider,
    wanted: HostedProvider = WANTED,
    *,
    before: Registered = FIRST,
    follows: bool = False,
) -> HostedProvider:
    """What a restart makes of it; a second one with the same options must change nothing more."""
    merged, record = as_left(before, stored, wanted, follows=follows)
    assert as_left(record, merged, wanted, follows=follows)[0] == merged
    return merged


def test_what_nobody_changed_is_as_the_start_asks() -> None:
    """Another address, other models, another key; also after a start that asked for no key."""
    changed = replace(WANTED, url=ELSEWHERE, models={"n": HostedModel(name="n")}, api_key="new")
    assert restarted(WANTED, changed) == changed
    keyless = replace(WANTED, api_key=None)
    merged, record = as_left(FIRST, WANTED, keyless, follows=False)
    assert merged == WANTED
    assert restarted(merged, replace(WANTED, api_key="new"), before=record).api_key == "new"


def test_each_change_of_an_administrators_stays() -> None:
    """Each field by itself, its key, and both together."""
    changes = {
        "url": "https://ai.example/openai/v1",
        "rank": 3,
        "enabled": False,
        "connect_timeout_ms": 1,
        "first_event_timeout_ms": 2,
        "stall_timeout_ms": 3,
        "output_limit_field": "max_completion_tokens",
        "extensions": ("top_k",),
        "api_key": "by-admin",
    }
    for name, value in changes.items():
        stored = replace(WANTED, **{name: value})
        assert restarted(stored) == stored
    assert restarted(replace(WANTED, **changes)) == replace(WANTED, **changes)
    assert restarted(replace(WANTED, api_key=None)).api_key is None


def test_models_are_merged_one_by_one() -> None:
    """A price stays, what was removed stays away, what is new to both is added."""
    plain = {name: HostedModel(name=name) for name in ("a", "b", "c")}
    before = first_registered(replace(WANTED, models=plain))
    priced = HostedModel(name="a", price=PRICE)
    own = HostedModel(name="own")
    stored = replace(WANTED, models={"a": priced, "c": plain["c"], "own": own})
    new = {**plain, "d": HostedModel(name="d")}
    merged = restarted(stored, replace(WANTED, models=new), before=before)
    assert merged.models == {"a": priced, "c": plain["c"], "d": new["d"], "own": own}
    only_b = replace(WANTED, models={"b": plain["b"]})
    rest = replace(WANTED, models={"c": plain["c"]})
    assert restarted(rest, only_b, before=before).models == rest.models


def test_a_key_goes_to_no_server_that_it_was_not_given_for() -> None:
    """Neither an administrator's to where the start moves it, nor the start's to where they did."""
    by_admin = replace(WANTED, api_key="by-admin", enabled=False)
    moved = restarted(by_admin, replace(WANTED, url=ELSEWHERE, api_key=None))
    assert (moved.url, moved.api_key, moved.enabled) == (ELSEWHERE, None, False)
    theirs = replace(WANTED, url=ELSEWHERE, api_key=None)
    assert restarted(theirs, replace(WANTED, api_key="new")) == theirs
    same_key = replace(WANTED, url=ELSEWHERE)
    assert restarted(same_key, replace(WANTED, api_key="new")) == same_key


def test_a_process_of_ours_is_where_it_is() -> None:
    """Its key goes with it; one that was given for another server does not."""
    wanted = a_provider(url="http://127.0.0.1:10/v1")
    before = first_registered(a_provider(url="http://127.0.0.1:9/v1"))
    stored = a_provider(url="http://127.0.0.1:9/v1", api_key="by-admin", rank=3)
    merged = restarted(stored, wanted, before=before, follows=True)
    assert merged == replace(stored, url=wanted.url)
    away = replace(stored, url=ELSEWHERE)
    merged, _ = as_left(before, away, wanted, follows=True)
    assert (merged.url, merged.api_key) == (wanted.url, None)


def test_the_record_holds_no_key(tmp_path: Path) -> None:
    """And is read back; a broken one is none."""
    record = tmp_path / "hosted.json"
    assert read_record(record) == {}
    write_record(record, {"acme-ai": FIRST})
    assert read_record(record) == {"acme-ai": FIRST}
    assert "from-the-variable" not in record.read_text()
    record.write_text('["acme-ai"]')
    assert read_record(record) == {}
