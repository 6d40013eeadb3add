"""The tests of the page need a browser and what drives it: without them they are skipped, and say what is missing."""
import pathlib
import shutil

import pytest

HERE = pathlib.Path(__file__).resolve().parent
MODULES = HERE.parent.parent / "web/node_modules"


def lacking(item):
    """The units run without a browser."""
    if not shutil.which("node"):
        return "no Node.js: apt-get install nodejs npm"
    if not (MODULES / "playwright-core").is_dir():
        return "no web/node_modules: tools/build-web"
    if not shutil.which("chromium", path="/usr/bin") and item.path.name != "test_units.py":
        return "no Chromium: apt-get install chromium"
    return None


def pytest_collection_modifyitems(items):
    for item in items:
        reason = HERE in item.path.parents and lacking(item)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
