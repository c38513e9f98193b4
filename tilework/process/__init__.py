"""The state that belongs to the process: locks across forks, counters, and what installed packages plug in."""
