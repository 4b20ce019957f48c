"""python -m reluctant is the command."""

from __future__ import annotations

if __name__ == "__main__":
    from reluctant.cli import main

    main()
