"""The commands of `alma`, a file each: thin layers over the library."""
