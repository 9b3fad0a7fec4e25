"""Metadata of the package cachemark: on Linux it needs the engine of exactly its own version.

Elsewhere it is installed without the engine: stored runs can be read there.
"""

# hatchling is only in the environment in which it builds a package.
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class EngineOfTheSameVersion(MetadataHookInterface):
    """Puts the engine before the dependencies that pyproject.toml lists for this hook."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling, which has read the version from engine/Cargo.toml."""
        engine = f"cachemark-engine=={metadata['version']}; sys_platform == 'linux'"
        metadata["dependencies"] = [engine, *self.config["dependencies"]]
