"""Options of the kind `images`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, WrapValidator

from tfr_assets.option_groups import ColumnName, OneOf, Whole, moved, options, problem, problem_at
from tfr_assets.sources.model.label_options import ClassifiedOptions

FORMATS = ("jpeg", "png", "raw")
MAX_PIXELS = 178_956_970  # where Pillow takes an image for a decompression bomb
_QUALITY, _CHANNELS = 95, 3
_Side = Annotated[int, Whole(1, 65_500)]  # of a JPEG


def _size(value: Any, validate: Callable[[Any], Any]) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        value = (value, value)
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise problem(f"expected 224, or [height, width] such as [224, 320]; found {value!r}")
    try:
        return validate(value)
    except ValidationError as error:
        raise moved(error, lambda location: (("height", "width")[int(location[0])],)) from None


def _channels(value: Any) -> Any:
    if value == 2:
        raise problem("expected 1 (gray) or 3 (RGB); found 2")
    return value


@dataclass(frozen=True)
class Conversion:
    """How images are made anew. Their EXIF orientation is applied, and their metadata are left out.

    Attributes:
        size: Height and width that they are resized to, whatever their proportions; None: as they are.
        format: `jpeg`, `png` or `raw`; None: JPEG stays JPEG, all else becomes PNG.
        quality: Of JPEG, from 1 to 100.
        channels: Of raw pixels: 1 (gray) or 3 (RGB).
    """

    size: tuple[int, int] | None = None
    format: str | None = None
    quality: int = _QUALITY
    channels: int = _CHANNELS


@options("source.images")
class ImageOptions(ClassifiedOptions):
    """Photographs: files, or a column of a table. Without `size` and `format`, they stay byte for byte as they are.

    Attributes:
        column: Column of tables that holds the images. Default: files are images.
        max_pixels: Largest height × width.
        size: Height and width that images are resized to, whatever their proportions, or one number for both.
        format: What images become: `jpeg`, `png` or `raw` (pixels). Default, with `size`: JPEG stays JPEG, all else
            becomes PNG.
        quality: Of JPEG, from 1 to 100. Default: 95.
        channels: Of raw pixels: 1 (gray) or 3 (RGB, the default).
    """

    column: ColumnName | None = Field(default=None, examples=["image"])
    max_pixels: Annotated[int, Whole(1, 2**62)] = MAX_PIXELS
    size: Annotated[tuple[_Side, _Side], WrapValidator(_size, json_schema_input_type=int | list[int])] | None = Field(
        default=None, examples=[224, [224, 320]]
    )
    format: Annotated[str, OneOf(FORMATS)] | None = Field(default=None, examples=["jpeg"])
    quality: Annotated[int, Whole(1, 100)] | None = Field(default=None, examples=[90])
    channels: Annotated[int, Whole(1, 3), BeforeValidator(_channels)] | None = Field(default=None, examples=[1])

    def __post_init__(self) -> None:
        """Checks what goes together."""
        super().__post_init__()
        converted = self.size is not None or self.format is not None
        if self.quality is not None and (not converted or self.format in ("png", "raw")):
            raise problem_at(("quality",), "has a meaning only with `format: jpeg`; add that, or remove it")
        if self.channels is not None and self.format != "raw":
            raise problem_at(("channels",), "has a meaning only with `format: raw`; add that, or remove it")

    @property
    def rows_have_columns(self) -> bool:
        """Whether tables hold the images."""
        return self.column is not None

    @property
    def conversion(self) -> Conversion | None:
        """How images are made anew; None: they stay as they are."""
        if self.size is None and self.format is None:
            return None
        return Conversion(self.size, self.format, self.quality or _QUALITY, self.channels or _CHANNELS)
