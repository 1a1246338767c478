"""Cards: so many pixels for texts, which Pillow draws, and for axes, which matplotlib does.

Texts are drawn by what measures them, so that they fit. matplotlib's own settings, which a user may have changed and
threads share, play no part. Positions are pixels from the card's upper left corner.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from tfr_assets.pictures.palette import CARD, EDGE, FAINT, INK
from tfr_assets.pictures.png import CHARTS, encode, shrinking
from tfr_assets.pictures.text import SIZE, SMALL_SIZE, TITLE_SIZE, fit, font

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg

WIDTH = 868  # as wide as a contact sheet
MARGIN = 20
INNER = WIDTH - 2 * MARGIN
_DPI = 100
_ANCHORS = {"left": "lm", "center": "mm", "right": "rm"}


class Card:
    """A picture in the making.

    Attributes:
        top: Where its content begins, below the titles.
    """

    def __init__(self, height: int, title: str, subtitle: str = "") -> None:
        """Begins with the titles.

        Args:
            height: Of the content.
            title: Stands above, and is cut where it is too long; may be empty.
            subtitle: Stands below the title, likewise.
        """
        self.top = MARGIN + (26 if title else 0) + (20 if subtitle else 0)
        self._height = self.top + height + MARGIN
        self._bars: list[tuple[tuple[int, int, int, int], str]] = []
        self._texts: list[tuple[tuple[float, float], str, str, int, str, bool]] = []
        self.write(MARGIN, MARGIN + 8, fit(title, INNER, TITLE_SIZE, bold=True), INK, TITLE_SIZE, bold=True)
        self.write(MARGIN, self.top - 14, fit(subtitle, INNER, SMALL_SIZE), FAINT, SMALL_SIZE)

    def write(
        self,
        x: float,
        y: float,
        text: str,
        color: str = INK,
        size: int = SIZE,
        align: str = "left",
        bold: bool = False,
    ) -> None:
        """Puts a line of text on the card, on top of all else; it has been through `fit`.

        Args:
            x: Where it begins, is centred or ends.
            y: Its middle.
            text: The line.
            color: Its colour.
            size: Of the font, in pixels.
            align: Which of these `x` is: left, center or right.
            bold: Whether it is a title.
        """
        self._texts.append(((x, y), text, color, size, _ANCHORS[align], bold))

    def axes(self, left: float, top: float, width: float, height: float) -> "Axes":
        """Returns bare axes within the card: no frame, no ticks, no labels."""
        made = self._canvas.figure.add_axes(
            (left / WIDTH, 1 - (top + height) / self._height, width / WIDTH, height / self._height)
        )
        made.set_axis_off()
        return made

    def bar(self, left: float, top: float, width: int, height: int, color: str) -> None:
        """Draws a filled rectangle; nothing if it has no width."""
        x, y = round(left), round(top)
        if width > 0:
            self._bars.append(((x, y, x + width - 1, y + height - 1), color))

    @cached_property
    def _canvas(self) -> "FigureCanvasAgg":
        """What matplotlib draws on; made only where something asks for axes, because importing it takes long."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH / _DPI, self._height / _DPI), dpi=_DPI, facecolor=CARD, linewidth=0)
        figure.set_layout_engine("none")
        return FigureCanvasAgg(figure)

    def png(self) -> bytes:
        """Returns the card as a PNG of less than 100 kB."""
        from PIL import Image, ImageDraw

        picture = Image.new("RGB", (WIDTH, self._height), CARD)
        if "_canvas" in self.__dict__:
            self._canvas.draw()
            picture = Image.frombuffer("RGBA", self._canvas.get_width_height(), self._canvas.buffer_rgba()).convert(
                "RGB"
            )
        draw = ImageDraw.Draw(picture)
        for box, color in self._bars:
            draw.rectangle(box, color)
        draw.rectangle((0, 0, picture.width - 1, picture.height - 1), outline=EDGE)
        for position, text, color, size, anchor, bold in self._texts:
            draw.text(position, text, color, font(size, bold), anchor=anchor)
        return encode(shrinking(picture), CHARTS)


def empty(title: str, says: str) -> bytes:
    """Returns a card that has nothing to show, as a PNG.

    Args:
        title: Stands above.
        says: What there is none of.
    """
    return Card(0, title, says).png()


def stroke(
    plot: "Axes", x: Sequence[float], y: Sequence[float], color: str, width: float, line: str = "-", marker: str = ""
) -> None:
    """Draws a line through points.

    Args:
        plot: Where.
        x: Positions of the points, in the plot's units.
        y: Likewise.
        color: The line's colour.
        width: In points; 0.72 are a pixel.
        line: matplotlib's name of a style: `-`, `--` or `:`.
        marker: matplotlib's name of what marks each point, such as `o` or `|`; none if empty.
    """
    plot.plot(x, y, color=color, linewidth=width, linestyle=line, marker=marker, markersize=4, clip_on=False)
