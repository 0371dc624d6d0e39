"""Values in words: for logs, errors, terminals, notebooks and pages."""
