"""One thread for every library unless a test asks for more: tests are many and small, and threads would only wait.

Ctrl-C has Python's default handler, even if a shell started the tests in the background, where it is ignored.
"""

import os
import signal

threads = os.environ.get("OMP_NUM_THREADS", "1")
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, threads)

import torch  # noqa: E402

torch.set_num_threads(int(threads))
signal.signal(signal.SIGINT, signal.default_int_handler)
