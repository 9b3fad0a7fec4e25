"""The two ends of a measurement: servers, and clients with the workers that drive them."""
