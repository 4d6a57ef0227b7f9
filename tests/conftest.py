"""One thread for every library, unless asked for more: the tests are many and small, and threads would only wait.

Ctrl-C is what Python makes of it, also where a shell has started them in the background and made them ignore it.
"""

import os
import signal

threads = os.environ.get("OMP_NUM_THREADS", "1")
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, threads)

import torch  # noqa: E402

torch.set_num_threads(int(threads))
signal.signal(signal.SIGINT, signal.default_int_handler)
