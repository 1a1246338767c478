"""Colours that stay apart for colour-blind eyes, on an opaque light card that suits white and dark pages alike."""

CARD = "#fbfbfa"
EDGE = "#d8dbe0"  # the card's border, grid lines, frames of thumbnails
INK = "#1f2328"
FAINT = "#5b6470"  # 5.8 : 1 on the card: readable, but second to INK
MUTED = "#aab4c0"  # bars that are there for comparison
ACCENT = "#0072b2"
SERIES = (ACCENT, "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK)  # after Okabe and Ito
