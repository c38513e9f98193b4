"""PTX executed on NumPy: GPU code that runs without a GPU.

See `device.Device`, and `tilework emulate` on the command line.
"""
