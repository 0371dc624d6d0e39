"""The steps of an instant: begun, fenced, decided, carried out, completed or given up."""
