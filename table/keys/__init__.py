"""Record keys and partition paths, as each key generator makes them."""
