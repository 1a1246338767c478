"""The kind `audio`: recordings as their files' bytes or as samples; `kind` is what `sources.model.kinds` loads."""
