"""Options of the kind `text`."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from tfr_assets.option_groups import Expect, OneOf, Text, Values, Whole, options, problem_at
from tfr_assets.sources.model.label_options import ClassifiedOptions
from tfr_assets.sources.model.table_options import Encoding

TEXT = "text"  # names the column, and begins the names of the others
DOCUMENT, LINE, ROW = "document", "line", "row"
ENDINGS = (".txt", ".md", ".rst", ".html", ".htm", ".xml", ".tex")
_OF_ROWS = ("column", "key", "format", "options")
_Ending = Annotated[str, Field(pattern=r"^\.[^.]+$"), AfterValidator(str.lower)]
_Endings = Annotated[tuple[_Ending, ...], Field(min_length=1), Expect("a list of endings such as ['.txt', '.log']")]


@options("source.text")
class TextOptions(ClassifiedOptions):
    """Texts: documents, lines, or a column of a table.

    Attributes:
        per: What becomes a record: `document` (a file as a whole), `line`, or `row` (of a table). Default: a line of a
            path that is one file, a row where `column` is named, otherwise a document.
        column: The column of texts, in tables.
        key: The column that parts of a mixed source are joined by, in tables.
        format: As of a table.
        options: As of a table.
        encoding: Of documents and lines, as Python names it, and of CSV.
        endings: Of the files that are documents or have lines. Default: .txt .md .rst .html .htm .xml .tex
        max_length: Most tokens of a text, or without a tokenizer most characters. Default: no limit.
        tokenizer: A `tokenizer.json`, or `package.module:function`.
    """

    per: Annotated[str, OneOf((DOCUMENT, LINE, ROW))] | None = Field(default=None, examples=["line"])
    column: Text | None = Field(default=None, examples=["review"])
    key: Text | None = Field(default=None, examples=["id"])
    format: Text | None = Field(default=None, examples=["csv"])
    options: Values | None = Field(default=None, examples=[{"delimiter": ";"}])
    encoding: Encoding = Field(default="utf-8", examples=["latin-1"])
    endings: _Endings = Field(default=ENDINGS, examples=[[".txt", ".log"]])
    max_length: Annotated[int, Whole(1)] | None = Field(default=None, examples=[512])
    tokenizer: Text | None = Field(default=None, examples=["tokenizer.json"])

    def __post_init__(self) -> None:
        """Checks what goes together."""
        super().__post_init__()
        if self.per == ROW and self.column is None:
            raise problem_at(("column",), "missing. With `per: row`, it names the column that holds the texts")
        of_files = [] if self.rows_have_columns else [name for name in _OF_ROWS if getattr(self, name) is not None]
        wrong = ["endings"] if self.rows_have_columns and self.endings != ENDINGS else of_files
        if wrong:
            per = self.per or (ROW if self.rows_have_columns else None)
            said = f"`per: {per}`" if per else "files of text"
            raise problem_at((wrong[0],), f"has no meaning for {said}; remove it")

    @property
    def rows_have_columns(self) -> bool:
        """Whether tables hold the texts."""
        return self.per == ROW or (self.per is None and self.column is not None)

    @property
    def table(self) -> dict[str, Any]:
        """What is said of the tables: `format` and `options`."""
        said: dict[str, Any] = {"format": self.format} if self.format else {}
        read = {} if self.encoding == "utf-8" else {"encoding": self.encoding}
        return said | ({"options": read | dict(self.options or {})} if read or self.options else {})
