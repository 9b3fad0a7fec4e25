"""From outcomes to answers: `verdict` judges one trial, `statistics` compares cells. Pure."""
