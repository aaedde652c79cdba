"""`python -m leakscope` is the command `leakscope`."""

from leakscope.cli import main

raise SystemExit(main())
