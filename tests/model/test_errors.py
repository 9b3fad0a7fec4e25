"""The question about a name that is not known."""

from cachemark.model.errors import similar_name


def test_library_without_language_gives_its_client() -> None:
    known = ["embedded", "memcached", "native", "python/pymemcache", "python/pylibmc"]
    assert similar_name("pymemcache", known) == "did you mean 'python/pymemcache'? "
    assert similar_name("memcachd", known) == "did you mean 'memcached'? "
    assert similar_name("zz", known) == ""
