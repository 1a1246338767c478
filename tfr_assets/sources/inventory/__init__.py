"""The inventory: taking it (`take`), what it holds (`inventory`), and its rows by number (`rows`)."""
