"""Which file group each row of a write goes to: one that has its key, or whose number it has, or a new one."""
