"""Changing files of a model on purpose."""

from __future__ import annotations

import json
from pathlib import Path


def without_manifest(model: Path) -> Path:
    """The model as one of 0.1.0, which wrote no manifest: files may differ from what they were."""
    file = model / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config.pop("manifest", None)
    file.write_text(json.dumps(config), encoding="utf-8")
    return model
