"""Memory that travels through a swarm of agents by itself."""
