"""`python -m modes_actor`: the same as the command `modes-actor`."""

from modes_actor.cli import main

raise SystemExit(main())
