"""Sessions and their tasks: created, carried through modes, completed, expired. Kept in the store, told as events."""
