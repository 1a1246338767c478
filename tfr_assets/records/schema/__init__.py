"""Which features per record has: Arrow types, options and casts → the feature spec (`features`, `derive`)."""
