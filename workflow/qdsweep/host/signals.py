"""The signals that ask a run to stop.

The module imports almost nothing, as `warm.client` imports it.
"""

import os
import signal

SIGNALS: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
# A closed terminal, where `nohup` does not ignore it.
if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
    SIGNALS = (*SIGNALS, signal.SIGHUP)


def ignore_signals() -> None:
    """Leaves signals to the main process: Ctrl-C and Slurm reach the whole group.

    Processes that a domain itself starts can be ended as usual: programs do not inherit a handler,
    unlike SIG_IGN, and forks take it back.
    """

    def restore() -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    for number in SIGNALS:
        signal.signal(number, lambda *_: None)
    os.register_at_fork(
        before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS),
        after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS),
        after_in_child=restore,
    )
