"""A Postgres that lacks what it had."""

from gateway.domain.postgres_past import AuditHead, Boot, Restored, lacking, restored

NOW_MS = 1_000


def test_what_was_held_and_is_not() -> None:
    """By boot and number; what is further, or new, lacks nothing."""
    a, b, c, d = Boot("a", 1), Boot("a", 2), Boot("b", 1), Boot("c", 1)
    assert lacking({a: 10, b: 10, c: 10}, {a: 9, c: 11, d: 1}) == {a: 10, b: 10}


def test_the_log_is_the_same_while_its_entry_is_there() -> None:
    """However many came after it; where nothing is remembered nothing can be missed."""
    head = AuditHead(9, "h9")
    assert restored(None, AuditHead(5, "h5"), head=head, hash_there="h5", now_ms=1) is None
    assert restored(None, None, head=head, hash_there=None, now_ms=1) is None


def test_an_entry_that_is_gone_or_another_is_a_restore() -> None:
    """It says how far the log was, and is."""
    for head, there in ((AuditHead(3, "h3"), None), (AuditHead(9, "x9"), "x5")):
        found = restored(None, AuditHead(5, "h5"), head=head, hash_there=there, now_ms=NOW_MS)
        assert found == Restored(NOW_MS, head.id, 5)


def test_what_was_found_stays() -> None:
    """Until it is confirmed; a later one widens it."""
    known = Restored(NOW_MS, 3, 5)
    kept = restored(known, AuditHead(4, "h4"), head=AuditHead(4, "h4"), hash_there="h4", now_ms=9)
    assert kept == known
    wider = restored(known, AuditHead(7, "h7"), head=AuditHead(2, "h2"), hash_there=None, now_ms=9)
    assert wider == Restored(NOW_MS, 2, 7)
