"""A client of Jupyter that starts a kernel and runs the cell in it."""

import os
import pathlib
import time

from jupyter_client.manager import KernelManager

place = pathlib.Path(os.environ["KERN_PLACE"])
code = pathlib.Path("code.py").read_text()
(place / "begun").touch()
manager = KernelManager(kernel_name="kern-python")
manager.start_kernel(cwd=os.getcwd(), env={**os.environ, "KERN_JUPYTER_WORKSPACE": "notebook"})
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=60)
client.execute_interactive(code, output_hook=lambda message: None)
(place / "shown").touch()
time.sleep(3600)
