"""The kind `mixed`: several sources joined by key; `kind` is what `sources.model.kinds` loads."""
