"""Pages of the reference that are made from the code: the fields of a dataset's YAML, and the commands.

A hook of MkDocs: https://www.mkdocs.org/user-guide/configuration/#hooks
"""

import json
from collections.abc import Iterator
from typing import Any

import click


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
    for name, field in schema["properties"].items():
        required = " (required)" if name in schema.get("required", ()) else ""
        yield f"## `{name}`{required}\n\n{field.get('description', '')}\n"
        examples = [f"{name}: {json.dumps(example, ensure_ascii=False)}" for example in field.get("examples", ())]
        if examples:
            yield "```yaml\n" + "\n".join(examples) + "\n```\n"


def _command(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=name, max_content_width=100)
    yield f"## `{name}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            yield from _command(f"{name} {part}", command.get_command(context, part))
