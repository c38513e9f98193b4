"""`kernel[grid](*args)`: binding, specialising, finding the compiled kernel, starting it."""
