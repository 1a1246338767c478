"""Several signals at once stop a command as one does."""

import subprocess
import sys
from textwrap import dedent


def test_signals_that_come_before_python_handles_the_first_one_stop_the_command() -> None:
    script = """
        import os, signal, time
        from tfr_assets.cli.signals import handle_stop_signals, stop_code, stopped_once
        signal.signal(signal.SIGINT, signal.default_int_handler)
        handle_stop_signals()
        both = {signal.SIGTERM, signal.SIGHUP}
        try:
            with stopped_once():
                signal.pthread_sigmask(signal.SIG_BLOCK, both)
                for number in both:
                    os.kill(os.getpid(), number)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
                time.sleep(0.1)
                print("not stopped")
        except KeyboardInterrupt:
            print("stopped", stop_code() in (129, 143))
    """
    done = subprocess.run([sys.executable, "-c", dedent(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "stopped True\n"
