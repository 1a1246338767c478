"""Pages of the reference that are made from the code: the fields of a dataset's YAML, and the commands.

A hook of MkDocs: https://www.mkdocs.org/user-guide/configuration/#hooks
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import click
import yaml


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Returns a page with its marks replaced."""
    if "<!-- fields -->" in markdown:
        markdown = markdown.replace("<!-- fields -->", "\n".join(_fields()))
    if "<!-- commands -->" in markdown:
        from tfr_assets.cli import cli

        markdown = markdown.replace("<!-- commands -->", "\n".join(_command("tfr", cli)))
    return markdown


def _fields() -> Iterator[str]:
    from tfr_assets import TFRecordDataset

    schema = TFRecordDataset.model().model_json_schema()
    groups = dict(schema["$defs"])  # each is described where it is met first
    for name, field in schema["properties"].items():
        required = " (required)" if name in schema.get("required", ()) else ""
        yield f"## `{name}`{required}\n\n{field.get('description', '')}\n"
        examples = [f"{name}: {_flow(example)}" for example in field.get("examples", ())]
        if examples:
            yield "```yaml\n" + "\n".join(examples) + "\n```\n"
        yield from _group(name, field, groups)


def _group(path: str, field: dict[str, Any], groups: dict[str, Any]) -> Iterator[str]:
    """Yields what a field's groups of options can hold."""
    for name in re.findall(r"#/\$defs/(\w+)", json.dumps(field)):
        group = groups.pop(name, None)
        if group is None:
            continue
        yield f"### `{path}`: {group['description']}\n"
        yield "| option | what | default | example |\n|---|---|---|---|"
        for option, about in group["properties"].items():
            default = f"`{_flow(about['default'])}`" if about.get("default") is not None else ""
            example = f"`{_flow(about['examples'][0])}`" if about.get("examples") else ""
            cells = (f"`{option}`", about.get("description", ""), default, example)
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        yield ""
        for option, about in group["properties"].items():
            yield from _group(f"{path}.{option}", about, groups)


def _flow(value: Any) -> str:
    text: str = yaml.safe_dump([value], default_flow_style=True, allow_unicode=True, width=10_000)
    return text.strip()[1:-1]


def _command(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=name, max_content_width=100)
    yield f"## `{name}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            yield from _command(f"{name} {part}", command.get_command(context, part))
