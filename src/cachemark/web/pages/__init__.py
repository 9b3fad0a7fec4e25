"""One file for each kind of page: a request → the values of its template."""
