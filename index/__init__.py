"""Which file group holds a record key."""
