"""What each tenant has in a pool, as the store is to show it: `PoolUse.shares`."""

from gateway.domain.queue.pool import Pool
from gateway.domain.queue.standing import Share
from gateway.domain.queue.tickets import Band


def shares_of(pool: Pool) -> dict[str, dict[Band, Share]]:
    """Of tenants that wait for a place or run."""
    shares: dict[str, dict[Band, Share]] = {}
    for band, line in pool.lines.items():
        for name in {*line.waiting, *line.running}:
            tickets = line.waiting.get(name, [])
            shares.setdefault(name, {})[band] = Share(
                requests=len(tickets),
                tokens=sum(ticket.cost for ticket in tickets),
                weight=line.weights.get(name, 1),
                running=line.running.get(name, 0),
                counter=line.counters.of(name),
            )
    return shares
