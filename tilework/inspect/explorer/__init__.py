"""Pages that show a kernel from its source to machine code: `tilework explore`, `kernel.explore()`, `tilework diff`."""
