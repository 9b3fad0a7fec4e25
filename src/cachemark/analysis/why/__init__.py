"""Why two clients differ: from counts to sentences, by rules that are data."""
