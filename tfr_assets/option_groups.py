"""Groups of options: pydantic dataclasses that describe and check themselves, in YAML and in Python alike.

A group is a class with `@options`. Its docstring describes each field once, for `help()`, for the JSON schema that
Dagster shows, and for the reference. What is wrong is one line a mistake: the field's path, what was found, the remedy.
"""

import difflib
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache, wraps
from inspect import getdoc
from typing import Annotated, Any, TypeVar, cast, dataclass_transform, get_args

from annotated_types import GroupedMetadata
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import ArgsKwargs, InitErrorDetails, PydanticCustomError, core_schema

from tfr_assets.errors import ConfigError

T = TypeVar("T")
Location = tuple[int | str, ...]
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)  # of a docstring's section `Attributes:`


@dataclass_transform(frozen_default=True, field_specifiers=(Field,))
def options(name: str, hints: Mapping[str, str] | None = None) -> Callable[[type[T]], type[T]]:
    """Makes a class a group of options: a frozen dataclass whose fields are checked when it is made.

    Made in Python, a wrong value is a ConfigError.

    Args:
        name: What messages call the group, where it is made in Python.
        hints: What to say of keys that are none of its fields.
    """

    def decorate(cls: type[T]) -> type[T]:
        def check_keys(group: Any, values: Any, validate: Callable[[Any], Any]) -> Any:
            known = [field.name for field in fields(group)]
            given: Any = (values.kwargs or {}) if isinstance(values, ArgsKwargs) else values
            if not isinstance(given, Mapping | group):
                raise problem(f"expected a mapping with {either(known)}; found {given!r}")
            wrong: dict[Any, str] = {}
            for key, value in given.items() if isinstance(given, Mapping) else ():
                if key not in known:
                    wrong[key] = (hints or {}).get(str(key)) or unknown(key, known)
                elif value is None and given is values and _holds_group(group.__pydantic_fields__[key].annotation):
                    wrong[key] = "has no value; give it one, or leave it out"
            details = [
                InitErrorDetails(type=problem(text), loc=(_printable(str(key)),), input=given[key])
                for key, text in wrong.items()
            ]
            if wrong:
                rest = {key: value for key, value in given.items() if key not in wrong}
                values = ArgsKwargs(values.args, rest) if isinstance(values, ArgsKwargs) else rest
            try:
                made = validate(values)
            except ValidationError as error:
                found = _details(error, lambda location: location, f"missing. It takes {', '.join(known)}")
                details += [each for each in found if each.get("loc") or not wrong]
            if details:
                raise ValidationError.from_exception_data("options", details)
            return made

        described: Any = cls
        validator: Any = classmethod(check_keys)
        described.check_keys = model_validator(mode="wrap")(validator)
        about, _, attributes = (getdoc(cls) or "").partition("\n\nAttributes:\n")
        for field, text in _ATTRIBUTE.findall(attributes):
            if field in cls.__annotations__:
                text = " ".join(text.split())
                cls.__annotations__[field] = Annotated[cls.__annotations__[field], Field(description=text)]
        config = ConfigDict(extra="forbid", json_schema_extra={"description": " ".join(about.split())})
        made: Any = pydantic_dataclass(frozen=True, config=config)(described)
        init, names = made.__init__, [field.name for field in fields(made)]

        @wraps(init)
        def checked(self: Any, *args: Any, **values: Any) -> None:
            by_name = dict(zip(names, args, strict=False)) if len(args) <= len(names) else {}
            try:
                init(self, *args[len(by_name) :], **by_name, **values)  # errors then name fields, not numbers
            except ValidationError as error:
                raise ConfigError("; ".join(mistakes(error, name))) from error

        made.__init__ = checked
        return made

    return decorate


def _holds_group(annotation: Any) -> bool:
    """Whether a field is of groups: in YAML, the name of one with nothing behind it is a line that was not finished."""
    return hasattr(annotation, "__pydantic_fields__") or any(map(_holds_group, get_args(annotation)))


def validate(type_: Any, value: Any, field: str) -> Any:
    """Returns `value` as a group of options, or as another type that checks itself.

    Args:
        type_: The type.
        value: As YAML has it.
        field: What messages call it.

    Raises:
        ConfigError: It is invalid.
    """
    try:
        return _adapter(type_).validate_python(value)
    except ValidationError as error:
        raise ConfigError("; ".join(mistakes(error, field))) from error


def validate_at(type_: type[T], value: Any, *location: int | str) -> T:
    """Returns `value` as a group of options, for a validator of what it lies in, at `location`.

    Raises:
        ValidationError: It is invalid.
    """
    try:
        made: T = _adapter(cast(Hashable, type_)).validate_python(value)
    except ValidationError as error:
        raise moved(error, lambda inner: (*location, *inner)) from None
    return made


@cache
def _adapter(type_: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type_)


def mistakes(error: ValidationError, field: str = "") -> list[str]:
    """Returns what is wrong, a line each that begins with the path of a field: `source.images.size: expected …`."""
    return [f"{path_of((field, *each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)]


def path_of(location: Location) -> str:
    """Returns the path of a field: `source.mixed.parts[0].path`."""
    named = (part for part in location if part != "[key]")  # pydantic's, after a key that is wrong itself
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in named).lstrip(".")


def problem(text: str) -> PydanticCustomError:
    """Returns the error that a validator raises: what was found, and what to write instead."""
    return PydanticCustomError("option", "{text}", {"text": _printable(text)})


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()  # YAML can hold halves of characters


def problem_at(location: Location, text: str, found: Any = None) -> ValidationError:
    """Returns the error that a validator raises of a field below what it checks."""
    details = InitErrorDetails(type=problem(text), loc=location, input=found)
    return ValidationError.from_exception_data("options", [details])


def moved(error: ValidationError, move: Callable[[Location], Location], missing: str = "missing") -> ValidationError:
    """Returns the error with its fields elsewhere, and what to say of one that is not there."""
    return ValidationError.from_exception_data(error.title, _details(error, move, missing))


def _details(error: ValidationError, move: Callable[[Location], Location], missing: str) -> list[InitErrorDetails]:
    return [
        InitErrorDetails(
            type=problem(missing if each["type"].startswith("missing") else each["msg"]),
            loc=move(each["loc"]),
            input=each["input"],
        )
        for each in error.errors(include_url=False)
    ]


def unknown(key: object, known: Collection[str]) -> str:
    """Returns what is said of a key that nothing knows."""
    return f"not a setting{did_you_mean(key, known)}. Known are {', '.join(known)}"


def did_you_mean(found: object, known: Collection[str]) -> str:
    """Returns a question to append to a message, or nothing where no name is close to what was found."""
    close = difflib.get_close_matches(str(found), list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def either(choices: Collection[str]) -> str:
    """Returns names as an enumeration: `a, b or c`."""
    *first, last = choices
    return f"{', '.join(first)} or {last}" if first else last


@dataclass(frozen=True)
class Expect:
    """Of a type: what is expected where a value is none of it.

    Attributes:
        what: To follow "expected".
        deep: Whether that is also said of a wrong item, rather than what the item's own type says.
        remedy: A sentence to append.
    """

    what: str
    deep: bool = True
    remedy: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Returns the type's schema with other words."""

        def check(value: Any, validate: Callable[[Any], Any]) -> Any:
            try:
                return validate(value)
            except ValidationError as error:
                if not self.deep and any(each["loc"] for each in error.errors()):
                    raise
                remedy = f". {self.remedy}" if self.remedy else ""
                raise problem(f"expected {self.what}; found {value!r}{remedy}") from None

        return core_schema.no_info_wrap_validator_function(check, handler(source))


@dataclass(frozen=True)
class Whole(GroupedMetadata):
    """Of `int`: a whole number from `low` to `high`, or without end."""

    low: int
    high: int | None = None
    example: str = ""
    of: str = ""

    def __iter__(self) -> Iterator[object]:
        """Yields what pydantic and JSON schema know of it."""
        yield Strict()
        yield Field(ge=self.low, le=self.high)
        end = "up" if self.high is None else f"to {self.high}"
        such_as = f", such as {self.example}" if self.example else ""
        yield Expect(f"a whole number{self.of} from {self.low} {end}{such_as}")


@dataclass(frozen=True)
class OneOf:
    """Of `str`: one of some words."""

    choices: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Returns a schema that names the words."""

        def check(value: Any) -> Any:
            if value not in self.choices:
                hint = did_you_mean(value, self.choices)
                raise problem(f"{value!r} is not known{hint}. Choose one of: {', '.join(self.choices)}")
            return value

        return core_schema.no_info_before_validator_function(check, core_schema.literal_schema(list(self.choices)))


@dataclass(frozen=True)
class Shorthand:
    """Of a group: the value of one field may stand for all of it.

    Attributes:
        field: The field.
        example: What the value is, for messages.
        type: Of the value, for the schema.
        fits: Whether something is the field's value rather than the group.
    """

    field: str
    example: str = "a path"
    type: Any = str
    fits: Callable[[Any], bool] = lambda value: isinstance(value, str)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Returns the group's schema, for the value, too."""

        def check(value: Any, validate: Callable[[Any], Any]) -> Any:
            if self.fits(value):
                try:
                    return validate({self.field: value})
                except ValidationError as error:
                    raise moved(error, lambda location: location[1:]) from None
            if not isinstance(value, Mapping | source):
                known = either([field.name for field in fields(source)])
                raise problem(f"expected {self.example}, or a mapping with {known}; found {value!r}")
            return validate(value)

        return core_schema.no_info_wrap_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Returns that it is either."""
        return {"anyOf": [TypeAdapter(self.type).json_schema(), handler(schema)]}


@dataclass(frozen=True)
class Via:
    """Of a class that YAML gives as a group of options: what it gives is checked as the group, and then made to one.

    Attributes:
        group: The group.
        make: Returns the object, from what YAML gives.
    """

    group: Any
    make: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Returns the group's schema."""

        def check(value: Any, validate: Callable[[Any], Any]) -> Any:
            if isinstance(value, source):
                return value
            validate(value)
            return self.make(value)

        return core_schema.no_info_wrap_validator_function(check, handler.generate_schema(self.group))


Text = Annotated[str, Strict(), Field(min_length=1), Expect("text")]
Flag = Annotated[bool, Strict(), Expect("true or false")]
ColumnName = Annotated[str, Strict(), Field(min_length=1), Expect("the name of a column")]


def _key(value: Any) -> Any:
    if isinstance(value, bool):  # YAML reads yes, no, on and off as such
        raise problem(f"the name {value!r} is not text; put it in quotes")
    return str(value)


Column = Annotated[str, BeforeValidator(_key)]
"""Names a column as a key: YAML reads some names as numbers."""
Values = Annotated[Mapping[str, Any], Expect("names with values")]
