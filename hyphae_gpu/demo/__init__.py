"""The demo: gossip over the documentation of the libraries that are installed beside this package."""
