"""The command line: one thin file per verb; every thought lives in the library."""
