"""The parts of `HudiTable`, by what they are about."""
