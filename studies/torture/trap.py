"""A module that no file may import: mutated files name it, and it must not be loaded afterwards."""
