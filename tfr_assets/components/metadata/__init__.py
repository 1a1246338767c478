"""What the UI shows of files: numbers, schemas, pictures, progress, and one page of HTML with all of it."""
