"""Pictures of data and of measurements: small PNGs for an event log. Importing this room imports no library.

Pillow draws texts and thumbnails; matplotlib, which takes half a second to import, the axes of plots.
"""

from tfr_assets.pictures.balance import class_balance
from tfr_assets.pictures.bars import bars
from tfr_assets.pictures.curves import curves
from tfr_assets.pictures.png import LIMIT, as_markdown
from tfr_assets.pictures.sheet import MOST_THUMBNAILS, contact_sheet
from tfr_assets.pictures.timeline import timeline
from tfr_assets.pictures.waveform import MOST_SOUNDS, waveform_strip

__all__ = [
    "LIMIT",
    "MOST_SOUNDS",
    "MOST_THUMBNAILS",
    "as_markdown",
    "bars",
    "class_balance",
    "contact_sheet",
    "curves",
    "timeline",
    "waveform_strip",
]
