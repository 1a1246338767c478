"""The kind `text`: documents, lines, columns of tables, tokens; `kind` is what `sources.model.kinds` loads."""
