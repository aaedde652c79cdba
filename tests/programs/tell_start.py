"""Prints what a program can see of the way it was started."""

import sys

before = sorted(sys.modules)

import json  # noqa: E402
import os  # noqa: E402

print(
    json.dumps(
        {
            "argv": sys.argv,
            "orig_argv": sys.orig_argv,
            "path": sys.path,
            "modules": before,
            "name": __name__,
            "file": globals().get("__file__"),
            "warnoptions": sys.warnoptions,
            "flags": repr(sys.flags),
            "cwd": os.getcwd(),
            "umask": os.umask(0o22),
            "next_descriptor": os.dup(0),
            "isatty": [os.isatty(number) for number in range(3)],
            "sitecustomize": getattr(sys.modules.get("sitecustomize"), "MINE", None),
            "pythonpath_ends_with": os.environ.get("PYTHONPATH", "").rpartition(os.pathsep)[2],
        }
    )
)
