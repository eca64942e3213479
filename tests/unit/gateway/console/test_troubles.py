"""Each thing that can be degraded has words, and the worst comes first."""

from gateway.console.troubles import WORDS as IN_WORDS
from gateway.console.troubles import stores_text, troubles_of
from gateway.serving.condition import WORDS
from gateway.serving.live_view import HOSTED_USE, LATENCIES


def test_every_word_has_a_sentence_and_none_is_left_over() -> None:
    """A word that is added to the condition fails here until somebody has said what it means."""
    assert set(IN_WORDS) == {*WORDS, "draining", LATENCIES, HOSTED_USE}
    for trouble in IN_WORDS.values():
        assert trouble.title.endswith(".")
        assert trouble.text.endswith(".")


def test_what_stops_requests_comes_first() -> None:
    """Whatever the order of the words."""
    kinds = [trouble.kind for trouble in troubles_of(["usage", "redis", "metering"])]
    assert kinds == ["bad", "warn", "warn"]


def test_workers_and_models_are_named() -> None:
    """Some of them; the others are counted."""
    gone = [f"w{number}" for number in range(7)]
    told = troubles_of(["workers"], unreachable=gone, unserved=["m", "n (batch)"])
    assert [each.title for each in told] == [
        "No healthy worker serves m, n (batch).",
        "7 workers cannot be reached: w0, w1, w2, w3, w4 and 2 more.",
    ]
    assert troubles_of([], unreachable=["w"])[0].title == "1 worker cannot be reached: w."
    assert troubles_of(["workers"])[0].title == "No healthy worker serves a model."


def test_tenants_and_queues_that_are_not_known_are_one_notice_each() -> None:
    """However many; a word that nobody knows is shown as it is."""
    told = troubles_of(["redis:acme", "queue:m#batch", "redis:b{unserved}", "something"])
    assert [each.title for each in told] == [
        "Degraded: something.",
        "What 2 tenants use is not known: acme, b{unserved}.",
        "The queue is not known: m#batch.",
    ]
    assert troubles_of([]) == []


def test_what_cannot_be_asked_reads_as_a_sentence() -> None:
    """No word of `degraded` is shown as it is."""
    assert stores_text(["redis"]) == "Redis"
    assert stores_text(["queue:m"]) == "the queue of m"
    assert stores_text(["redis", "queue:m"]) == "Redis and the queue of m"
    assert stores_text(["redis", "queue:m", "queue:n"]) == (
        "Redis, the queue of m and the queue of n"
    )
