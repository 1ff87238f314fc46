"""The kinds of exhibit: rank sweeps, trained grids and computed curves. Exhibit files hold data."""
