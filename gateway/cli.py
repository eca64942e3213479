"""The `weir` command."""


def main() -> None:
    """Run one command."""
