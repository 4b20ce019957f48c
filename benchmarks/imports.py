"""How long `import reluctant` and the start of the command line take, in a fresh interpreter; the best of several."""

from __future__ import annotations

import subprocess
import sys

CODE = "import time; t = time.process_time(); import reluctant; reluctant.open_oracle; print(time.process_time() - t)"
COMMAND_LINE = """
import contextlib, io, time
with contextlib.redirect_stdout(io.StringIO()):
    from reluctant.cli.app import run
    run(ARGUMENTS)
print(time.process_time())  # the interpreter's own start included
"""
COMMANDS = (["--version"], ["--help"], ["extract", "--help"], ["audit", "--help"])
REPEATS = 7


def main() -> None:
    bare = best(CODE.replace("reluctant.open_oracle; ", ""))
    used = best(CODE)
    print(f"import reluctant                {bare:.3f} CPU s")
    print(f"and first use of open_oracle    {used:.3f} CPU s")
    for arguments in COMMANDS:
        seconds = best(COMMAND_LINE.replace("ARGUMENTS", repr(arguments)))
        print(f"{' '.join(['reluctant', *arguments]):<32}{seconds:.3f} CPU s")


def best(code: str) -> float:
    runs = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True) for _ in range(REPEATS)
    )
    return min(float(run.stdout) for run in runs)
