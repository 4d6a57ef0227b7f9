"""What `import drkm` adds to `import torch`: python -m benchmarks imports."""

from __future__ import annotations

import subprocess
import sys

CODE = "import time, torch; t = time.perf_counter(); import drkm; print(time.perf_counter() - t)"


def main() -> None:
    runs = [float(subprocess.check_output([sys.executable, "-c", CODE])) for _ in range(5)]
    print(f"import drkm adds {min(runs):.3f} s to import torch (best of {len(runs)})")


if __name__ == "__main__":
    main()
