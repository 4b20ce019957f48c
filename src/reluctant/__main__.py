"""python -m reluctant is the command."""

from reluctant.cli import main

main()
