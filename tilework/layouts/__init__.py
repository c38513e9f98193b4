"""Where the elements of a tensor are: plain frozen values."""
