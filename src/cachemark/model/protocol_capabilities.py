"""The capabilities that a worker can claim in its `ready`, in the words of PROTOCOL.md."""

CAPABILITIES = (
    "wire protocols, the library's default first (`text`, `binary`, `meta`, or only `none`); "
    "kinds of operations (`get`, `set_noreply` …); and any of `threads`, `pipeline`, `in_order` "
    "(a caller's operations on a key reach the server in their order, also those that are "
    "outstanding together or have no reply), `refill_all` (it can wait for all outstanding "
    "operations before it begins the next ones), `open_loop`, `unix`, `shared` (callers may share "
    "a connection), `cluster` (several servers), `tls` (it encrypts connections if the option "
    "`tls` is a PEM file with the certificates to trust; `tls_name` is the name that the server's "
    "certificate must have if it is not the address, `tls_client_cert` and `tls_client_key` are "
    "PEM files of the client's own), `merges` (the client may answer reads without a command for "
    "each), `think` (closed loops with think time), `timeline` (`done` has a `timeline`), "
    "`slices` (`begin_slices`, `slice`, `end_slices`), `groups` (`done` has `groups`), `calls` "
    "(it writes a call log when `run` asks for it); and of `cancel`, `exhaust`, `fork`, "
    "`interrupt`, `kill` the ways in which its callers can give up a call"
)
