"""The model of a dataset's YAML: every mistake at once, each with its line, before templates are filled in.

Dagster reads YAML by a pydantic model of what is written, then fills in templates (`{{ … }}`). Here, what is written is
checked by the fields' own types, as far as it has no templates; what it becomes is checked in full.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import dagster as dg
from pydantic import BaseModel, ValidationError, WrapValidator, create_model, model_validator
from pydantic_core import InitErrorDetails

from tfr_assets.option_groups import Location, path_of, problem, unknown

_TEMPLATE = {"type": "string", "pattern": r"\{[{%]"}
_MOVED = {name: f"stands below `bench` now; write bench: {{{name}: …}}" for name in ("readers", "writers")}


def yaml_model(name: str, options: type[BaseModel]) -> type[BaseModel]:
    """Returns the model of what is written in YAML, whose fields are those of `options` and hold what is written."""
    written = {
        key: (Annotated[field.rebuild_annotation(), WrapValidator(_check_written)], field)
        for key, field in options.model_fields.items()
    }

    def check(values: Any, validate: Callable[[Any], Any]) -> Any:
        try:
            return validate(values)
        except ValidationError as error:
            raise ValidationError.from_exception_data(name, [_told(each, options) for each in error.errors()]) from None

    validators: Any = {"check": model_validator(mode="wrap")(lambda cls, values, validate: check(values, validate))}
    return create_model(name, __base__=_Written, __validators__=validators, **written)  # type: ignore[call-overload]


class _Written(dg.Model):
    @classmethod
    def model_json_schema(cls, *args: Any, **settings: Any) -> dict[str, Any]:
        """Returns the schema by which `dg check yaml` and editors judge what is written: anything may be a template."""
        schema: dict[str, Any] = _allow_templates(super().model_json_schema(*args, **settings))
        return {**schema, "ui:order": list(cls.model_fields)}


def _allow_templates(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return [_allow_templates(each) for each in schema] if isinstance(schema, list) else schema
    made = {key: _allow_templates(value) if key in ("anyOf", "oneOf") else value for key, value in schema.items()}
    for key in ("$defs", "properties"):
        if key in schema:
            made[key] = {name: _allow_templates(value) for name, value in schema[key].items()}
    if "properties" in schema:
        made["properties"] = {name: _or_template(value) for name, value in made["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            made[key] = _or_template(_allow_templates(schema[key]))
    return made


def _or_template(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    about = {key: schema[key] for key in ("title", "description", "default", "examples") if key in schema}
    rest = {key: value for key, value in schema.items() if key not in about}
    if not rest or rest == {"type": "string"}:
        return schema
    return {**about, "anyOf": [*(rest["anyOf"] if list(rest) == ["anyOf"] else [rest]), _TEMPLATE]}


def _check_written(value: Any, validate: Callable[[Any], Any]) -> Any:
    if value is None:
        raise problem("has no value; give it one, or remove the line")
    if not _has_template(value):
        validate(value)
    return value


def _told(error: Any, options: type[BaseModel]) -> InitErrorDetails:
    location: Location = error["loc"]
    key, text = location[-1], error["msg"]
    if error["type"] == "missing":
        text = f"missing; add a line such as `{key}: {(options.model_fields[str(key)].examples or ['…'])[0]}`"
    elif error["type"] == "extra_forbidden":
        text = _MOVED.get(str(key)) or unknown(key, list(options.model_fields))
    # one of pydantic's own types, because Dagster takes the error apart to add the line
    context = {"error": ValueError(f"{path_of(location)}: {text}")}
    return InitErrorDetails(type="value_error", loc=location, input=error["input"], ctx=context)


def render(context: dg.ResolutionContext, value: Any) -> Any:
    """Returns `value` with the templates in it filled in, and nothing else changed.

    Dagster's own resolution evaluates every text as a Python literal, which makes a column named "1" a number.
    """
    if isinstance(value, Mapping):
        return {key: render(context.at_path(key), item) for key, item in value.items()}
    if isinstance(value, list):
        return [render(context.at_path(number), item) for number, item in enumerate(value)]
    return context.resolve_value(value) if _has_template(value) else value


def _has_template(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_template(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_template(item) for item in value)
    return isinstance(value, str) and ("{{" in value or "{%" in value)
