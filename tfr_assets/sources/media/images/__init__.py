"""The kind `images`: folders of photographs and columns of tables; `kind` is what `sources.model.kinds` loads."""
