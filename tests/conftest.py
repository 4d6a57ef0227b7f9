"""One thread for every library: the tests are many and small, and threads of their own would only wait.

Ctrl-C is what Python makes of it, also where a shell has started them in the background and made them ignore it.
"""

import os
import signal

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import torch  # noqa: E402

torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)
