"""`messiahs backup` and `restore`: a module with its keys, rows and files in one archive, and back."""
