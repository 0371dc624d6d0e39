"""The command `pyhudi`: its parser, which jobs share, its commands, and what it shows."""
