"""Runs at the start of every Python below `leakscope run`, before the program.

It imports nothing (importlib.abc alone would cost 25 ms), takes its folder off the path again,
lets the user's own sitecustomize run, says hello, and waits for a framework (torch, TensorFlow,
Keras, JAX) to be imported, or for a while to pass without one. Until then no other file of
leakscope is loaded.

Any Python below the program reads this file, so its syntax is that of Python 2 as well; one
too old for the rest gets nothing but its own sitecustomize.
"""
# mypy: ignore-errors
# ruff: noqa: UP031, BLE001, SIM105

import atexit
import os
import sys
import time

_FRAMEWORKS = ("torch", "tensorflow", "keras", "jax")

_START_UP_PAUSE_NS = 250000000
"""Imports that follow each other more closely than this are the program starting up."""

_WAIT_S = 0.15
"""A process that lives longer, and has not begun to import a framework, is followed by the clock.
Loading the agent takes 25 ms of CPU beside numpy and 50 ms alone; what is over sooner never pays
it."""

_GLANCE_S = 0.02
"""So often the waiting thread looks whether numpy is there: a program that has it computes, and may
be over in half a second."""

_FORK_S = 0.005
"""From our hook of a fork's parent until `fork` has returned, at most."""

_PATIENCE_S = 1.0

_SWITCH_S = 1e-4
"""While the agent is loaded beside a program that keeps the interpreter busy. Each of its files is
found and read in some ten calls that give the interpreter away, and at the usual 5 ms until it
comes back that took 0.5 to 2.2 s."""


def _number_in_job(names):
    """The first of these variables that is a number, as leakscope.record.format reads them."""
    for name in names:
        value = os.environ.get(name, "")
        if value and all("0" <= letter <= "9" for letter in value):
            return int(value)
    return None


def _file_in_job(process):
    """The name that leakscope.record.format.file_in_job gives it: with host, rank and restart."""
    short = os.uname()[1].partition(".")[0]
    host = "".join(c if c == "-" or (c.isalnum() and c < "\x80") else "_" for c in short)
    name = "%s.%s" % (process, host or "host")
    rank = _number_in_job(("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"))
    if rank is not None:
        restart = _number_in_job(("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"))
        name += ".rank%d.restart%d" % (rank, restart or 0)
    return name


def _append(directory, name, line):
    """One write to this process's own file."""
    descriptor = os.open(
        "%s/%s.jsonl" % (directory, name),
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
    _append(directory, _file_in_job(process), line)


def _import_agent():
    if "leakscope" not in sys.modules:
        path = os.environ.get("LEAKSCOPE_PACKAGE_PATH")
        try:
            import leakscope.agent.current
        except ModuleNotFoundError:
            # Another Python than the one leakscope is installed in; its own modules come first.
            sys.path.append(path)
            try:
                import leakscope.agent.current
            finally:
                sys.path.remove(path)
    import leakscope.agent.current

    return leakscope.agent.current


def _start_agent(directory):
    _import_agent().start_for_run(directory)


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


def _keep_interrupt():
    """At exit. Python notes that Ctrl-C ended the program, and dies of the signal in the end, but
    whoever runs a string of code afterwards, as the import of a named tuple does, wipes it out.
    Running a string that ends the same way notes it again."""
    if getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1"):
        try:
            exec("raise KeyboardInterrupt")
        except KeyboardInterrupt:
            pass


def _has_numpy():
    """All of it: one that is being imported may be a framework's, which starts the agent itself."""
    spec = getattr(sys.modules.get("numpy"), "__spec__", None)
    is_loading = getattr(spec, "_initializing", False) or any(
        name in sys.modules for name in _FRAMEWORKS
    )
    return spec is not None and not is_loading


class _Waiter:
    """Starts the agent in a program that has not imported a framework soon after its start.

    A thread that sleeps, as agent/timer.py has one, which takes over from it; the reasons for
    what it does are there. The end of the program and every fork end it.
    """

    def __init__(self, directory):
        import _signal
        import _thread

        self._signals = _signal
        self._threads = _thread
        self._directory = directory
        self._main_thread = _thread.get_ident()
        self._due_s = time.monotonic() + _WAIT_S
        self._loaded_s = None
        self._forked_s = 0.0
        self._wake = None
        self._task = 0
        self.is_needed = True
        """False once an agent is there or on its way."""

    def start(self, *_):
        if not self.is_needed or self._wake is not None:
            return
        signals = self._signals
        wake, done = self._threads.allocate_lock(), self._threads.allocate_lock()
        wake.acquire()
        done.acquire()
        self._wake, self._done = wake, done
        # Asked first: the call that blocks may raise what a signal's handler raises, when it has.
        mask = signals.pthread_sigmask(signals.SIG_BLOCK, ())
        try:
            signals.pthread_sigmask(signals.SIG_SETMASK, signals.valid_signals())
            self._threads.start_new_thread(self._wait, (wake, done))
        except RuntimeError:
            self._wake = None  # a limit on threads: the supervisor still watches
            self.is_needed = False
        finally:
            signals.pthread_sigmask(signals.SIG_SETMASK, mask)

    def is_main_thread(self):
        return self._threads.get_ident() == self._main_thread

    def stop(self, *_):
        """Ends the thread; one that starts the agent just now is waited for, a while."""
        if self._wake is not None and self._threads.get_native_id() != self._task:
            self._wake.release()
            self._wake = None
            return self._done.acquire(True, _PATIENCE_S)
        return False

    def end(self, *_):
        """At exit: what is imported from here on must not bring it back."""
        self.is_needed = False
        is_soon = self._loaded_s is not None and time.monotonic() - self._loaded_s < _PATIENCE_S
        if self.stop() and is_soon:
            _keep_interrupt()

    def leave_for_fork(self, *_):
        """And waits until the kernel does not count it any more, or Python 3.12 and newer warn."""
        if self.stop():
            deadline = time.monotonic() + _PATIENCE_S
            while os.path.exists("/proc/self/task/%d" % self._task):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.00005)

    def come_back(self, *_):
        """In the parent of a fork. Python 3.13 counts the threads after this, and warns; there the
        next import or collection brings it back."""
        if sys.version_info < (3, 13):
            self.start()
        elif self.is_needed:
            import gc

            self._forked_s = time.monotonic()
            if self._on_collection not in gc.callbacks:
                gc.callbacks.append(self._on_collection)

    def come_back_in_child(self, *_):
        self._due_s = time.monotonic() + _WAIT_S
        self.start()

    def _on_collection(self, phase, info):
        # One that comes while the hooks of others run is still within the fork.
        if phase == "stop" and time.monotonic() - self._forked_s > _FORK_S:
            import gc

            gc.callbacks.remove(self._on_collection)
            _quietly(self.start, self._directory)

    def _wait(self, wake, done):
        self._task = self._threads.get_native_id()
        try:
            while True:
                wait_s = self._due_s - time.monotonic()
                if wait_s <= 0.0 or _has_numpy():
                    break
                if wake.acquire(True, min(wait_s, _GLANCE_S)):
                    return
            if self.is_needed:
                self.is_needed = False
                self._loaded_s = time.monotonic()
                _quietly(self._start_by_clock, self._directory)
        finally:
            done.release()

    def _start_by_clock(self, directory):
        usual_s = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        try:
            agent = _import_agent()
            if self._wake is None:
                self.is_needed = True  # a fork waits for us: another time
            else:
                agent.start_by_clock(directory, self._main_thread)
        finally:
            # Unless the program has set one of its own meanwhile.
            if abs(sys.getswitchinterval() - _SWITCH_S) < 1e-6:
                sys.setswitchinterval(usual_s)


class _FrameworkFinder:
    """Stands first on sys.meta_path until a framework has been imported, then steps aside: the
    agent hooks those that come later.

    On the way it notes when the imports of the start were over: without steps to count, that
    is where the clock of a run should begin.
    """

    def __init__(self, directory, waiter):
        self._directory = directory
        self._waiter = waiter
        self._imported_ns = time.monotonic_ns()
        self._names = set()
        self._is_started = False

    def say_when(self, directory):
        """Runs at exit: when the imports were over, and that clean-up begins now."""
        now = time.monotonic_ns()
        wall_ns = time.time_ns()
        process = _name_self()
        mark = '{"type":"mark","at":{"wall_ns":%d,"mono_ns":%d},"process":"%s","what":"%s"}\n'
        imported = (wall_ns - (now - self._imported_ns), self._imported_ns, process, "imported")
        line = mark % imported + mark % (wall_ns, now, process, "exiting")
        _append(directory, _file_in_job(process), line)

    def find_spec(self, name, path=None, target=None):
        # What we ourselves import is not the program starting up, at its end least of all.
        calls = getattr(sys.modules.get("leakscope.agent.main_thread"), "MainThreadCall", None)
        is_ours = (
            getattr(calls, "is_busy", False)
            or name.partition(".")[0] == "leakscope"
            or not (self._waiter is None or self._waiter.is_main_thread())
        )
        # A module that is imported again, under the same name, is the program at work.
        if not self._is_started and not is_ours and name not in self._names:
            self._names.add(name)
            now = time.monotonic_ns()
            self._is_started = now - self._imported_ns > _START_UP_PAUSE_NS
            if not self._is_started:
                self._imported_ns = now
        if name not in _FRAMEWORKS:
            if self._waiter is not None and self._waiter.is_needed:
                _quietly(self._waiter.start, self._directory)
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
            if self._waiter is not None:
                self._waiter.is_needed = False
            original(module)
            # Only now: a look for one (transformers makes some) is not an import of it.
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


def _follow(directory):
    """Say hello, and have the agent come when it is time."""
    _quietly(_say_hello, directory)
    os.register_at_fork(after_in_child=lambda: _quietly(_say_hello, directory))
    waiter = _Waiter(directory) if sys.version_info >= (3, 11) else None
    finder = _FrameworkFinder(directory, waiter)
    sys.meta_path.insert(0, finder)
    atexit.register(_quietly, finder.say_when, directory)
    if waiter is not None:
        _quietly(waiter.start, directory)
        atexit.register(_quietly, waiter.end, directory)
        os.register_at_fork(
            before=lambda: _quietly(waiter.leave_for_fork, directory),
            after_in_parent=lambda: _quietly(waiter.come_back, directory),
            after_in_child=lambda: _quietly(waiter.come_back_in_child, directory),
        )


_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if entry != _here]
_directory = os.environ.get("LEAKSCOPE_RUN_DIR")
if _directory and sys.version_info >= (3, 8):
    _follow(_directory)
_run_users_own()
