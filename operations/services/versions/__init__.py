"""Tables brought to another version: which steps there are, what each changes, and the call that takes one."""
