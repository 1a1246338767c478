"""Options of the kind `audio`."""

from typing import Annotated

from pydantic import Field, Strict

from tfr_assets.option_groups import Expect, Flag, OneOf, Whole, options, problem_at
from tfr_assets.sources.model.label_options import ClassifiedOptions

LARGEST = 1 << 28  # samples of one recording: 1 GB of float32; a tf.Example is limited to 2 GB


@options("source.audio")
class AudioOptions(ClassifiedOptions):
    """Recordings: the files as they are, or their samples.

    Attributes:
        samples: What records hold: `encoded`, the files as they are, or samples as `float32` or `int16`.
        rate: Hz that samples are resampled to. Default: as recorded.
        mono: Whether channels are mixed to one, by their mean.
        seconds: Length that every recording is padded to with zeros, or cut to; it needs `rate` and `mono`. Default:
            as long as it is.
    """

    samples: Annotated[str, OneOf(("encoded", "float32", "int16"))] = Field(default="encoded", examples=["float32"])
    rate: Annotated[int, Whole(1, of=" of Hz", example="16000")] | None = Field(default=None, examples=[16000])
    mono: Flag | None = Field(default=None, examples=[True])
    seconds: Annotated[float, Strict(), Expect("a number, such as 1.5")] | None = Field(default=None, examples=[1.5])

    def __post_init__(self) -> None:
        """Checks what goes together."""
        super().__post_init__()
        if self.samples == "encoded":
            for name in ("rate", "mono", "seconds"):
                if getattr(self, name) is not None and getattr(self, name) is not False:
                    text = (
                        "has no meaning for `samples: encoded`, which keeps files as they are. "
                        "Set `samples: float32` (or int16), or remove it"
                    )
                    raise problem_at((name,), text)
        elif self.seconds is not None:
            self._check_length(self.seconds)

    def _check_length(self, seconds: float) -> None:
        if not (self.rate and self.mono):
            text = "needs `rate` and `mono: true` too, because records of one length have one rate and one channel"
            raise problem_at(("seconds",), text)
        if not 0.5 < seconds * self.rate < LARGEST:
            text = f"{seconds} at a rate of {self.rate:,} Hz is not between 1 and {LARGEST:,} samples"
            raise problem_at(("seconds",), text)

    @property
    def length(self) -> int | None:
        """Samples of every recording; None: as many as it has."""
        return None if self.seconds is None or self.rate is None else round(self.seconds * self.rate)
