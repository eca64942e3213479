"""Who waits here, by tenant."""

from memory_ports import StandingClock
from waiting_rooms import asked

from gateway.domain.queue.tickets import Queued
from gateway.serving.queue.book import LOOKED_AT, Book
from gateway.serving.queue.entry import Entry, State


def waits(book: Book, name: str, wait_ms: int | None, **changes: object) -> Entry:
    """A request that waits, and the wait that was predicted for it."""
    entry = Entry(asked(name, **changes), StandingClock(), 0, 10**12)
    book.add(entry)
    book.move(entry, State.WAITING)
    entry.standing = Queued(0, 0, wait_ms)
    return entry


def test_the_first_wait_is_the_shortest_of_the_tenants_own() -> None:
    book = Book()
    assert book.first_wait_ms("m", "acme") is None
    waits(book, "a", None)
    assert book.first_wait_ms("m", "acme") is None
    waits(book, "b", 900)
    shortest = waits(book, "c", 300)
    waits(book, "d", 5, tenant="globex")
    waits(book, "e", 7, pool="other")
    assert book.first_wait_ms("m", "acme") == 300
    book.move(shortest, State.HELD)
    assert (book.first_wait_ms("m", "acme"), book.waiting_of("m", "acme")) == (900, 2)


def test_a_refusal_looks_at_no_more_than_a_few() -> None:
    """With thousands that wait each refusal would hold the event loop up."""
    book = Book()
    entries = [waits(book, f"r{number}", 500) for number in range(LOOKED_AT + 1)]
    entries[-1].standing = Queued(0, 0, 1)
    assert book.first_wait_ms("m", "acme") == 500
    book.move(entries[0], State.GONE)
    assert book.first_wait_ms("m", "acme") == 1
    for entry in entries:
        book.move(entry, State.GONE)
    assert (book.waiting_of("m", "acme"), len(book)) == (0, 0)
