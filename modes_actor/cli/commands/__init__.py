"""The subcommands: one module each, loaded when it is asked for."""
