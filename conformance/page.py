"""The page of results."""
