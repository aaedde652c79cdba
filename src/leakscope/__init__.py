"""Why does my training or inference job's memory keep growing, and how do I stop it?

The public names. Importing this module loads nothing heavy: no framework, no numpy, no rich.
"""

from __future__ import annotations

__version__ = "0.1.0"
