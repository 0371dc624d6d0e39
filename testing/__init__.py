"""Tests for authors of indexes, which they run against tables of pyhudi; nothing else of pyhudi imports it."""
