"""Reports of `cachemark resilience`: the matrix of clients and faults, as text and as a page."""
