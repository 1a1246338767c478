"""Which features a record has: Arrow types, options and casts → the feature spec (`features`, `derive`)."""
