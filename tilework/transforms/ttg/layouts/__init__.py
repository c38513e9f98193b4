"""How layouts travel: forwards, backwards, and what that costs."""
