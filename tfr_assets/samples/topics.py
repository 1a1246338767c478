"""The help topics of Python itself, which `help("operators")` and the like show."""


def topic_files() -> dict[str, bytes]:
    """Returns some eighty English texts by file name, such as `operators.txt`."""
    return {f"{name}.txt": text.encode() for name, text in topics().items()}


def topics() -> dict[str, str]:
    """Returns the texts by title."""
    from pydoc_data.topics import topics

    return dict(sorted(topics.items()))
