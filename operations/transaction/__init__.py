"""An instant's life: begun, fenced, compared with other instants, completed or given up."""
