"""One file per framework. An adapter reads `sys.modules`; it never imports its framework."""
