"""Runs the program with a home of its own."""
import os
import pathlib
import subprocess

from serving import HUNG_S

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Souk:
    """The program with an empty home folder and no variables but those a test sets."""

    def __init__(self, home):
        self.program = os.environ.get("SOUK_PROGRAM", str(ROOT / "build" / "souk"))
        self.home = home
        self.variables = {"HOME": str(home), "PATH": os.environ["PATH"]}
        # Sanitizers take their settings from the environment.
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                self.variables[name] = os.environ[name]

    def start(self, *arguments, **options):
        return subprocess.Popen([self.program, *map(str, arguments)], env=self.variables,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def __call__(self, *arguments, stdin="", code=0):
        result = subprocess.run([self.program, *map(str, arguments)], env=self.variables,
                                input=stdin, capture_output=True, text=True, timeout=HUNG_S)
        assert result.returncode == code, result.stderr
        return result
