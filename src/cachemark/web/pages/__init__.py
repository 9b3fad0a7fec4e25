"""One file for each kind of page: what a request asks for → the values of its template."""
