"""What writers leave for one another: who they are, that they live, which files they make, what they decided."""
