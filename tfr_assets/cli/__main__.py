"""`python -m tfr_assets.cli` is `tfr`."""

from tfr_assets.cli import main

main()
