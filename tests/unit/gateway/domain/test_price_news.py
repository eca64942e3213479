"""What a gateway has heard of prices that it has not read."""

from gateway.domain.price_news import PriceNews, WrittenPrice

BEGINS_MS = 5_000


def news_of(changed: int, *, seen: int = 9) -> PriceNews:
    """A gateway that has read all up to `seen` hears, at 1.0 s, of a price."""
    news = PriceNews()
    news.hear([WrittenPrice(changed, BEGINS_MS)], seen=seen, at_s=1.0)
    return news


def test_a_price_matters_from_when_it_begins() -> None:
    news = news_of(10)
    assert [news.has_begun(at_ms) for at_ms in (BEGINS_MS - 1, BEGINS_MS)] == [False, True]


def test_what_is_read_is_no_news() -> None:
    """Before it was heard of, or after."""
    assert not news_of(9).has_begun(BEGINS_MS)
    news = news_of(10)
    news.read(seen=9, began_s=0.9)
    assert news.has_begun(BEGINS_MS)
    news.read(seen=10, began_s=0.9)
    assert not news.has_begun(BEGINS_MS)


def test_a_price_that_a_backup_lost_is_not_waited_for() -> None:
    """Postgres answers and does not have it: neither then nor when Redis repeats it. Another price
    of the same number is news."""
    news = news_of(10)
    news.read(seen=7, began_s=1.1)
    assert not news.has_begun(BEGINS_MS)
    news.hear([WrittenPrice(10, BEGINS_MS)], seen=7, at_s=2.0)
    assert not news.has_begun(BEGINS_MS)
    news.hear([WrittenPrice(10, BEGINS_MS), WrittenPrice(10, BEGINS_MS + 1)], seen=7, at_s=3.0)
    assert not news.has_begun(BEGINS_MS)
    assert news.has_begun(BEGINS_MS + 1)
