"""Checks a dataset's YAML as a whole: every mistake at once, each with its line.

Dagster derives a pydantic model from the component's fields, for the docs and the editor's completion. Left to itself
that model says "Extra inputs are not permitted", or one error for every branch of a union. Here the fields' own parsers
look first.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import dagster as dg
from pydantic import BaseModel, ValidationError, create_model, model_validator
from pydantic_core import InitErrorDetails

from tfr_assets.components.config.fields import unknown_key
from tfr_assets.errors import ConfigError

Parsers = Mapping[str, Callable[[Any], Any]]


def with_parsers(model: type[BaseModel], parsers: Parsers) -> type[BaseModel]:
    """Returns `model` with `parsers` put before its own validation.

    Args:
        model: The model that Dagster derived from a component.
        parsers: A parser for every field; it raises `ConfigError`.
    """

    def look(values: Any) -> Any:
        if isinstance(values, Mapping) and (errors := list(_mistakes(model, values, parsers))):
            raise ValidationError.from_exception_data("the dataset's attributes", errors)
        return values

    validators: Any = {"look": model_validator(mode="before")(look)}
    checked: type[BaseModel] = create_model(model.__name__, __base__=model, __validators__=validators)
    return checked


def render(context: dg.ResolutionContext, value: Any) -> Any:
    """Returns `value` with the templates in it filled in, and nothing else changed.

    Dagster's own resolution evaluates every text as a Python literal, which makes a column named "1" a number.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping):
        return {key: render(context, item) for key, item in value.items()}
    if isinstance(value, list):
        return [render(context, item) for item in value]
    return context.resolve_value(value) if _has_template(value) else value


def _mistakes(model: type[BaseModel], values: Mapping[str, Any], parsers: Parsers) -> Iterator[InitErrorDetails]:
    for name, field in model.model_fields.items():
        if field.is_required() and name not in values:
            yield _error(name, values, f"{name}: missing; add a line such as `{name}: {(field.examples or ['…'])[0]}`")
    for name, value in values.items():
        if name not in parsers:
            yield _error(name, value, unknown_key(str(name), name, parsers))
        elif value is None:
            yield _error(name, value, f"{name}: has no value; give it one, or remove the line")
        elif not _has_template(value):
            try:
                parsers[name](value)
            except ConfigError as error:
                yield _error(name, value, str(error))


def _error(name: str, value: Any, message: str) -> InitErrorDetails:
    # one of pydantic's own types, because Dagster takes the error apart to add the line
    return InitErrorDetails(type="value_error", loc=(name,), input=value, ctx={"error": ValueError(message)})


def _has_template(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_template(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_template(item) for item in value)
    return isinstance(value, str) and ("{{" in value or "{%" in value)
