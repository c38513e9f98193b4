"""What happens once: compilations, loads, tunings, and what tells one specialisation from another."""
