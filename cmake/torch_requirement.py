"""Dependencies of the Python package: the minor version of torch that it is compiled against."""

from __future__ import annotations

import importlib.metadata


def dynamic_metadata(field: str, settings: object = None, project: object = None) -> list[str]:
    if field != "dependencies":
        raise RuntimeError(f"torch_requirement: no rule for {field}")
    major, minor = importlib.metadata.version("torch").split(".")[:2]
    return ["numpy>=1.26", f"torch=={major}.{minor}.*"]
