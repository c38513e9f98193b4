"""What a layout computation cannot do."""


class LayoutError(ValueError):
    """A layout that does not exist, or that an operation cannot give: the message says which and why."""
