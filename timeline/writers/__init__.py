"""What writers leave for other writers: their owner notes, heartbeats, markers and decisions."""
