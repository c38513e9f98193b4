"""Three independent implementations of what a kernel computes, which check each other and the code generators."""
