"""A container's health check: exit status 0 where a GET of the URL is answered with 200.

    python answers.py http://127.0.0.1:8080/readyz

Anything else is one line on standard error and status 1. It needs the standard library alone.
"""

import sys
import urllib.error
import urllib.request

TIMEOUT_S = 2.0


def reason_against(url: str) -> str | None:
    """Why `url` is not healthy; None where it is. A proxy of the environment is not asked."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT_S) as answer:
            return None if answer.status == 200 else f"status {answer.status}"
    except urllib.error.HTTPError as error:
        return f"status {error.code}"
    except OSError as error:
        return type(error).__name__


if __name__ == "__main__":
    against = reason_against(sys.argv[1])
    if against is not None:
        sys.exit(f"{sys.argv[1]}: {against}")
