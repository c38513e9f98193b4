"""Lower tiles to loop nests over buffers, for targets that run one program on one core."""
