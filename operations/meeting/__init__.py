"""What an instant in the making and the other instants of its table mean for each other: judged here, not acted on."""
