"""Programs that try to make headwise wrong. Each is seeded, bounded in time, and prints figures."""
