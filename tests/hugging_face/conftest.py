"""A config as a file."""

import json

import pytest


@pytest.fixture
def write(tmp_path):
    def put(config) -> str:
        path = tmp_path / "config.json"
        path.write_text(config if isinstance(config, str) else json.dumps(config))
        return str(path)

    return put
