"""`python -m gateway` is `weir`."""

from gateway.cli import main

main()
