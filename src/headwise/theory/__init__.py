"""What the papers prove, and the finite law."""
