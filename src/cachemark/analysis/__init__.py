"""Outcomes → answers: `verdict` judges one trial, `statistics` compares cells. Pure."""
