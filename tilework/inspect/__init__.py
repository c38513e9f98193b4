"""Facts about compilations and launches, and the views that show them: `tilework explore`, `diff`, `profile`, `explain`."""
