"""Options of the kind `images`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfr_assets.errors import ConfigError
from tfr_assets.sources.media.labels import LabelOptions, parse_labels
from tfr_assets.sources.model.options import check_known, choice, follow_links, on_error

FORMATS = ("jpeg", "png", "raw")
MAX_PIXELS = 178_956_970  # where Pillow takes an image for a decompression bomb
_QUALITY = 95
_OPTIONS = (
    *("labels", "classes", "on_error", "follow_links", "column", "max_pixels"),
    *("size", "format", "quality", "channels"),
)
_MOST_PIXELS_OF_A_SIDE = 65_500  # of a JPEG


@dataclass(frozen=True)
class Conversion:
    """How images are encoded again. Their EXIF orientation is applied, and their metadata are left out.

    Attributes:
        size: Height and width that they are resized to, whatever their proportions; None: as they are. In options, one
            number stands for both.
        format: `jpeg`, `png` or `raw`; None: JPEG stays JPEG, all else becomes PNG.
        quality: Of JPEG, from 1 to 100.
        channels: Of raw pixels: 1 (gray) or 3 (RGB).
    """

    size: tuple[int, int] | None = None
    format: str | None = None
    quality: int = _QUALITY
    channels: int = 3


@dataclass(frozen=True)
class ImageOptions:
    """Options of a source of images.

    Attributes:
        labels: Options `labels` and `classes`.
        skip: Option `on_error`: whether bad files are left out.
        follow_links: Option of this name: whether links that lead out of the folder are followed.
        column: Column of tables that holds the images; None: files are images.
        max_pixels: Largest height × width.
        conversion: Options `size`, `format`, `quality` and `channels`; None: images stay byte for byte as they are.
    """

    labels: LabelOptions
    skip: bool
    follow_links: bool
    column: str | None
    max_pixels: int
    conversion: Conversion | None


def parse_options(options: Mapping[str, Any], field: str) -> ImageOptions:
    """Returns what the options of a source of images mean.

    Args:
        options: By name.
        field: What they are options of, for messages: `source.images`.

    Raises:
        ConfigError: They are invalid.
    """
    check_known(options, _OPTIONS, field)
    column = options.get("column")
    if column is not None and (not isinstance(column, str) or not column):
        raise ConfigError(f"{field}.column: expected the name of a column, found {column!r}.")
    return ImageOptions(
        labels=parse_labels(options, field, rows_have_columns=column is not None),
        skip=on_error(options, field),
        follow_links=follow_links(options, field, of_files=column is None),
        column=column,
        max_pixels=_whole(options, "max_pixels", MAX_PIXELS, 1, 2**62, field),
        conversion=_conversion(options, field),
    )


def _conversion(options: Mapping[str, Any], field: str) -> Conversion | None:
    size = options.get("size")
    format_ = choice(options, "format", FORMATS, "", field) if "format" in options else None
    for name, without in (("quality", ("png", "raw")), ("channels", ("jpeg", "png", None))):
        if name in options and (format_ in without or (size is None and format_ is None)):
            of = "format: jpeg" if name == "quality" else "format: raw"
            raise ConfigError(f"{field}.{name}: has a meaning only with `{of}`; add that, or remove it.")
    if size is None and format_ is None:
        return None
    channels = _whole(options, "channels", 3, 1, 3, field)
    if channels == 2:
        raise ConfigError(f"{field}.channels: expected 1 (gray) or 3 (RGB), found 2.")
    quality = _whole(options, "quality", _QUALITY, 1, 100, field)
    return Conversion(None if size is None else _size(size, field), format_, quality, channels)


def _size(value: Any, field: str) -> tuple[int, int]:
    if isinstance(value, int) and not isinstance(value, bool):
        value = (value, value)
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ConfigError(f"{field}.size: expected 224, or [height, width] such as [224, 320], found {value!r}.")
    sides = {"height": value[0], "width": value[1]}
    height, width = (_whole(sides, name, 0, 1, _MOST_PIXELS_OF_A_SIDE, f"{field}.size") for name in sides)
    return height, width


def _whole(options: Mapping[str, Any], name: str, default: int, low: int, high: int, field: str) -> int:
    value = options.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"{field}.{name}: expected a whole number from {low} to {high}, found {value!r}.")
    return value
