"""What dots become."""
