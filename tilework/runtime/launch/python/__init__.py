"""The launch of a kernel in Python: bind, specialise, look up, compile, launch; right for every device and every
Python.
"""
