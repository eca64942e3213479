"""Pure billing rules: no database, no network, no clock."""
