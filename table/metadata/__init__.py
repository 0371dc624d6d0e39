"""The metadata table of Apache Hudi, read: which files a table has, what their columns hold, and where its keys are."""
