"""Facts of the machine a run happens on. Read from files; starts no other program.

Never read inside a program that is being started: the supervisor does it. What only a running
process shows, the libraries it has loaded and the packages they belong to, is in `loaded.py`.
"""

from __future__ import annotations

import os
import platform
import socket
import sys

from leakscope.model import Machine
from leakscope.observe.machine.installed import build_of, packages_in
from leakscope.observe.machine.kernel import accelerators, kernel_facts
from leakscope.observe.machine.limits import find_cgroup, read_meminfo, smallest_limit
from leakscope.observe.machine.settings import memory_settings


def describe_machine(*, has_builds: bool = False) -> Machine:
    """The machine, and what this Python has installed; builds take some ms for each package."""
    limit = smallest_limit(find_cgroup())
    packages = packages_in(path for path in sys.path if path)
    return Machine(
        host=socket.gethostname(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        cpu_count=len(os.sched_getaffinity(0)),
        ram_bytes=read_meminfo().get("ram_bytes"),
        libc=" ".join(platform.libc_ver()) or None,
        allocator_settings=memory_settings(os.environ),
        limit_bytes=limit.bytes if limit else None,
        limit_from=limit.source if limit else None,
        packages={name: one.version for name, one in sorted(packages.items())},
        accelerators=accelerators(),
        builds={name: build_of(one) for name, one in packages.items()} if has_builds else {},
        facts=kernel_facts(),
    )
