# SPDX-License-Identifier: Apache-2.0
"""Starts real processes on free ports and always ends them.

Every process leads a group of its own, which is ended at exit; should this program be killed, the
kernel kills its children. Logs live in one folder a run, kept only when something failed.
"""
import atexit
import ctypes
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("SIGNALBOX", str(ROOT / "build/dev/signalbox"))
# Sanitized programs are slow: gross bounds are stretched by this.
PATIENCE = float(os.environ.get("SIGNALBOX_E2E_PATIENCE", "1"))
SANITIZE = os.environ.get("SIGNALBOX_E2E_SANITIZE", "")

_running = []
_folder = None
_libc = ctypes.CDLL(None)


def folder():
    """Where this run keeps logs and files."""
    global _folder
    if _folder is None:
        _folder = pathlib.Path(tempfile.mkdtemp(prefix="signalbox-e2e-"))
    return _folder


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, condition, within=10.0, every=0.02):
    """Calls `condition` until it is true; its value. Fails with the name of what was missed."""
    end = time.monotonic() + within * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {within * PATIENCE:g} s: {what}")
        time.sleep(every)


def _die_with_parent():
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Process:
    """One program, its group, and its log."""

    count = 0

    def __init__(self, name, command, env=None):
        assert threading.current_thread() is threading.main_thread()
        Process.count += 1
        self.name = f"{Process.count:03d}-{name}"
        self.log_path = folder() / f"{self.name}.log"
        self._log = open(self.log_path, "wb")
        self.popen = subprocess.Popen(
            [str(c) for c in command], stdin=subprocess.DEVNULL, stdout=self._log,
            stderr=subprocess.STDOUT, env={**os.environ, **(env or {})}, start_new_session=True,
            preexec_fn=_die_with_parent)
        self._log.close()
        _running.append(self)

    @property
    def pid(self):
        return self.popen.pid

    def log(self):
        return self.log_path.read_text(errors="replace")

    def alive(self):
        return self.popen.poll() is None

    def find(self, pattern, within=15.0):
        """Waits for a line of the log; all matches of `pattern`."""
        def look():
            found = re.findall(pattern, self.log())
            if not found and not self.alive():
                raise AssertionError(f"{self.name} ended with {self.popen.returncode}:\n"
                                     + self.log()[-3000:])
            return found
        return wait_for(f"'{pattern}' in the log of {self.name}", look, within)

    def send_signal(self, number):
        self.popen.send_signal(number)

    def wait(self, within=10.0):
        """Exit code of a program that ends by itself."""
        return self.popen.wait(within * PATIENCE)

    def stop(self, number=signal.SIGTERM, grace=5.0):
        """Ends the group: asks, waits, kills. The exit code."""
        if self in _running:
            _running.remove(self)
        if self.alive():
            self._signal_group(number)
            try:
                self.popen.wait(grace * PATIENCE)
            except subprocess.TimeoutExpired:
                pass
        self._signal_group(signal.SIGKILL)
        return self.popen.wait()

    def _signal_group(self, number):
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def rss(self):
        """Resident bytes."""
        for line in open(f"/proc/{self.pid}/status"):
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

    def cpu(self):
        """Seconds of processor time so far."""
        fields = open(f"/proc/{self.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stop_all():
    for process in list(_running):
        process.stop(signal.SIGKILL)


def finish(failed):
    """Called once at the end of a run: removes the logs, or says where they are."""
    stop_all()
    if _folder is None:
        return
    if not failed and not os.environ.get("SIGNALBOX_E2E_KEEP"):
        shutil.rmtree(_folder, ignore_errors=True)
        return
    print(f"\nlogs: {_folder}", file=sys.stderr)
    paths = sorted(_folder.glob("*.log"))
    for path in paths:
        text = path.read_text(errors="replace").strip()
        told = "Sanitizer: " in text  # by a sanitizer, which is never too much to print
        if text and (told or len(paths) <= 24):
            print(f"--- {path.name}", *text.splitlines()[-12:], sep="\n", file=sys.stderr)


atexit.register(stop_all)
for _number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(_number, lambda number, frame: sys.exit(128 + number))
