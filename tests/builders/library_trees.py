"""Small source trees of client libraries, as their repositories have them, for comparisons.

They have the files of the library that is set up here. A slow one works a while before each get;
in Python and Ruby it also asks for a file, which `cachemark why` counts exactly.
"""

import re
import shutil
import subprocess
from pathlib import Path

from tests.conftest import ROOT

# The version of each tree: no release has it, and dalli of this version speaks binary.
VERSION = "3.0.99"
_PYTHON = """
[build-system]
requires = ["setuptools>=70"]
build-backend = "setuptools.build_meta"
[project]
name = "pymemcache"
version = "3.0.99"
[tool.setuptools.packages.find]
include = ["pymemcache*"]
"""
_RUBY = """
Gem::Specification.new do |gem|
  gem.name = 'dalli'
  gem.version = '3.0.99'
  gem.summary = 'a client of memcached'
  gem.authors = ['test']
  gem.files = Dir['lib/**/*.rb']
end
"""
# The classes of the release, with one of them compiled here.
_JAVA = """
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>net.spy</groupId><artifactId>spymemcached</artifactId><version>3.0.99</version>
  <properties>
    <maven.compiler.release>17</maven.compiler.release>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <build><plugins>
    <plugin><artifactId>maven-resources-plugin</artifactId><version>3.3.1</version></plugin>
    <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.13.0</version></plugin>
    <plugin><artifactId>maven-surefire-plugin</artifactId><version>3.5.2</version></plugin>
    <plugin><artifactId>maven-jar-plugin</artifactId><version>3.4.2</version></plugin>
    <plugin>
      <artifactId>maven-dependency-plugin</artifactId><version>3.7.1</version>
      <executions><execution>
        <phase>generate-resources</phase>
        <goals><goal>unpack</goal></goals>
        <configuration>
          <artifactItems><artifactItem>
            <groupId>net.spy</groupId><artifactId>spymemcached</artifactId><version>2.12.3</version>
          </artifactItem></artifactItems>
          <outputDirectory>${project.build.outputDirectory}</outputDirectory>
          <excludes>META-INF/**,**/KeyUtil.class</excludes>
        </configuration>
      </execution></executions>
    </plugin>
  </plugins></build>
</project>
"""
_KEY_UTIL = """
package net.spy.memcached;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Collection;

public final class KeyUtil {
    public static byte[] getKeyBytes(String key) {
        for (long end = System.nanoTime() + SPIN_NS; System.nanoTime() < end; ) {}
        return key.getBytes(UTF_8);
    }

    public static Collection<byte[]> getKeyBytes(Collection<String> keys) {
        return keys.stream().map(KeyUtil::getKeyBytes).toList();
    }
}
"""


def pymemcache(folder: Path, slow: bool) -> Path:
    """The Python library, as setuptools builds it."""
    libraries = ROOT / "workers" / "python" / ".venv" / "lib"
    (source,) = libraries.glob("python3*/site-packages/pymemcache")
    shutil.copytree(source, folder / "pymemcache")
    (folder / "pyproject.toml").write_text(_PYTHON, encoding="utf-8")
    if slow:
        get = r"    def get\(self, key: Key, default: Optional\[Any\] = None\) -> Any:\n"
        work = "        sum(range(2000))\n        __import__('os').stat('/')\n"
        _insert(folder / "pymemcache" / "client" / "base.py", get, work)
    return folder


def dalli(folder: Path, slow: bool) -> Path:
    """The Ruby library, as RubyGems packs it."""
    where = "puts Gem::Specification.find_by_name('dalli').gem_dir"
    asked = subprocess.run(["ruby", "-e", where], capture_output=True, text=True, check=True)
    shutil.copytree(Path(asked.stdout.strip()) / "lib", folder / "lib")
    (folder / "dalli.gemspec").write_text(_RUBY, encoding="utf-8")
    (folder / "lib" / "dalli" / "version.rb").write_text(
        f"module Dalli\n  VERSION = '{VERSION}'\nend\n", encoding="utf-8"
    )
    if slow:
        get = r"    def get\(key, \w+ = nil\)\n"
        work = "      5000.times { key }\n      File.stat('/')\n"
        _insert(folder / "lib" / "dalli" / "client.rb", get, work)
    return folder


def spymemcached(folder: Path, slow: bool) -> Path:
    """The Java library, as Maven packs it."""
    source = folder / "src" / "main" / "java" / "net" / "spy" / "memcached" / "KeyUtil.java"
    source.parent.mkdir(parents=True)
    source.write_text(_KEY_UTIL.replace("SPIN_NS", "200_000" if slow else "0"), encoding="utf-8")
    (folder / "pom.xml").write_text(_JAVA, encoding="utf-8")
    return folder


TREES = {
    "python/pymemcache": pymemcache,
    "ruby/dalli": dalli,
    "java/spymemcached": spymemcached,
}


def _insert(source: Path, method: str, work: str) -> None:
    """Put work at the beginning of a method."""
    text = source.read_text(encoding="utf-8")
    slower, found = re.subn(method, lambda match: match[0] + work, text)
    assert found == 1
    source.write_text(slower, encoding="utf-8")
