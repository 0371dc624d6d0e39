"""The methods that `HudiTable` and `pyhudi.arrow.Table` share: what they do needs no engine."""
