"""What authors of indexes need to test them against tables; nothing else of pyhudi imports it."""
