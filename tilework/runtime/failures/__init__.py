"""What the user sees when something goes wrong: wrong calls, errors that nobody catches, crashes."""
