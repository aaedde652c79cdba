"""Runs at the start of every Python below `leakscope run`, before the program.

It imports nothing (importlib.abc alone would cost 25 ms), takes its folder off the path again,
lets the user's own sitecustomize run, says hello, and waits for torch to be imported. Until
then no other file of leakscope is loaded.

Any Python below the program reads this file, so its syntax is that of Python 2 as well; one
too old for the rest gets nothing but its own sitecustomize.
"""
# mypy: ignore-errors
# ruff: noqa: UP031, BLE001, SIM105

import atexit
import os
import sys
import time

_START_UP_PAUSE_NS = 250000000
"""Imports that follow each other more closely than this are the program starting up."""


def _append(directory, process, line):
    """One write to this process's own file."""
    descriptor = os.open(
        "%s/%s.jsonl" % (directory, process),
        os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC,
        0o644,
    )
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def _name_self():
    """`pid-startticks`, as leakscope.record.format names processes."""
    descriptor = os.open("/proc/self/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        stat = os.read(descriptor, 1024)
    finally:
        os.close(descriptor)
    return "%d-%s" % (os.getpid(), stat[stat.rindex(b")") + 2 :].split()[19].decode())


def _say_hello(directory):
    """Leave the first line of this process's file: seen, and followed."""
    process = _name_self()
    # Numbers and names that need no escaping only: the supervisor knows the command line.
    line = (
        '{"type":"process","process":"%s","pid":%d,"parent_pid":%d,'
        '"at":{"wall_ns":%d,"mono_ns":%d},"kind":"process","python":"%d.%d.%d"}\n'
        % (
            process,
            os.getpid(),
            os.getppid(),
            time.time_ns(),
            time.monotonic_ns(),
            sys.version_info[0],
            sys.version_info[1],
            sys.version_info[2],
        )
    )
    _append(directory, process, line)


def _start_agent(directory):
    if "leakscope" not in sys.modules:
        path = os.environ.get("LEAKSCOPE_PACKAGE_PATH")
        try:
            import leakscope.agent
        except ModuleNotFoundError:
            # Another Python than the one leakscope is installed in; its own modules come first.
            sys.path.append(path)
            try:
                import leakscope.agent
            finally:
                sys.path.remove(path)
    import leakscope.agent

    leakscope.agent.start_for_run(directory)


def _quietly(action, directory):
    """Nothing that goes wrong here may reach the program; the supervisor sees the missing file."""
    try:
        action(directory)
    except Exception as error:
        try:
            text = "".join(c for c in repr(error) if " " <= c <= "~" and c not in '"\\')
            line = '{"type":"gap","what":"agent in process %d","why":"%s"}\n' % (os.getpid(), text)
            _append(directory, "gaps", line)
        except Exception:
            pass


class _TorchFinder:
    """Stands first on sys.meta_path until torch has been imported, then steps aside.

    On the way it notes when the imports of the start were over: without steps to count, that
    is where the clock of a run should begin.
    """

    def __init__(self, directory):
        self._directory = directory
        self._imported_ns = time.monotonic_ns()
        self._is_started = False

    def say_when(self, directory):
        """Runs at exit: when the imports were over, and that clean-up begins now."""
        now = time.monotonic_ns()
        wall_ns = time.time_ns()
        process = _name_self()
        mark = '{"type":"mark","at":{"wall_ns":%d,"mono_ns":%d},"process":"%s","what":"%s"}\n'
        imported = (wall_ns - (now - self._imported_ns), self._imported_ns, process, "imported")
        line = mark % imported + mark % (wall_ns, now, process, "exiting")
        _append(directory, process, line)

    def find_spec(self, name, path=None, target=None):
        if not self._is_started:
            now = time.monotonic_ns()
            self._is_started = now - self._imported_ns > _START_UP_PAUSE_NS
            if not self._is_started:
                self._imported_ns = now
        if name != "torch":
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None) if finder is not self else None
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                break
        else:
            return None
        loader, directory = spec.loader, self._directory
        original = getattr(loader, "exec_module", None)
        if original is None:
            return spec

        def exec_module(module):
            try:
                del loader.exec_module
            except AttributeError:
                pass
            original(module)
            # Only now: a look for torch (transformers makes one) is not an import of it.
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            _quietly(_start_agent, directory)

        # Python cuts importlib's own frames out of the traceback of a failing import; with its
        # file name ours is cut out with them, and the program's stderr stays its own.
        try:
            code = original.__func__.__code__
            exec_module.__code__ = exec_module.__code__.replace(co_filename=code.co_filename)
            loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader of another make: the agent stays out, the supervisor still watches
        return spec


def _run_users_own():
    """Import the sitecustomize that ours hides, as Python would have done."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        # Python 2 has the name in the text only.
        if getattr(error, "name", str(error).split(" ")[-1]) != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if entry != _here]
_directory = os.environ.get("LEAKSCOPE_RUN_DIR")
if _directory and sys.version_info >= (3, 8):
    _quietly(_say_hello, _directory)
    os.register_at_fork(after_in_child=lambda: _quietly(_say_hello, _directory))
    _finder = _TorchFinder(_directory)
    sys.meta_path.insert(0, _finder)
    atexit.register(_quietly, _finder.say_when, _directory)
_run_users_own()
