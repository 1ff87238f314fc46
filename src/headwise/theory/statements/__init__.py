"""Every theorem with a simulation that tries to break it and a violator that must be caught."""
