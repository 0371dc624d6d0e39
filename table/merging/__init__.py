"""Who wins when several rows have one record key."""
