"""The archive: the history of instants that have left the timeline."""
