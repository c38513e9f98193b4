"""Facts about IR. An analysis returns a value and changes nothing."""
