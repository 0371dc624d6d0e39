"""The history of instants that have left the timeline."""
