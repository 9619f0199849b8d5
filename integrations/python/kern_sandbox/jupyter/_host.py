"""A kernel ends with the host that has started it, however that ends."""

import os
import select
import sys
import threading
from typing import Mapping


def end_with_host(environment: Mapping[str, str]) -> None:
    """JPY_PARENT_PID names the host; a kernel that is to outlive it has none. ipykernel looks for it, too, but each second,
    only once it is imported, and in a session of systemd it does not see that the host had gone before."""
    try:
        host = os.pidfd_open(int(environment["JPY_PARENT_PID"]))
    except ProcessLookupError:
        sys.exit("kern_sandbox: the host that JPY_PARENT_PID names has ended")
    except (AttributeError, KeyError, ValueError, OSError):
        return  # there is none, or Linux is older than 5.3

    def wait() -> None:
        select.select([host], [], [])
        os._exit(1)

    threading.Thread(target=wait, name="kern-host", daemon=True).start()
