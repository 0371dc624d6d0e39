"""An instant's life: begun, fenced, held against what others did, completed or given up."""
