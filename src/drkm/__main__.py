"""python -m drkm."""

from drkm.cli import main

main()
