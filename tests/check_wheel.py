"""Build the wheel, install it with only its core dependencies in a clean environment, and use it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
USE = """
import contextlib, importlib.resources, io
import drkm, drkm.metrics, drkm.datasets, drkm.baselines
import numpy as np
X, _ = drkm.datasets.make_square(60, 0.1, random_state=0)
model = drkm.ConstrDRKM((2, 1)).fit(X)
assert model.converged_ and np.allclose(model.transform(X), model.codes_, atol=1e-5)
model.save("model.safetensors")
assert np.array_equal(drkm.load("model.safetensors").transform(X), model.transform(X))
from drkm.explorer import Subject, page, record
assert page(record(Subject(model))).startswith("<!doctype html>"), "files of the explorer are missing"
told = io.StringIO()
with contextlib.redirect_stderr(told), contextlib.suppress(SystemExit):
    drkm.cli.main()
assert "drkm[cli]" in told.getvalue(), told.getvalue()
assert importlib.resources.files("drkm").joinpath("py.typed").is_file(), "type checkers would not read its types"
print("the wheel of drkm", drkm.__version__, "installs, imports and fits")
"""


def run(*command: str, cwd: Path = ROOT) -> None:
    subprocess.run(command, check=True, cwd=cwd)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        run(sys.executable, "-m", "build", "--wheel", "--outdir", str(place), str(ROOT))
        (wheel,) = place.glob("*.whl")
        run(sys.executable, "-m", "venv", str(place / "env"))
        python = str(place / "env" / "bin" / "python")
        install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c")
        run(*install, str(ROOT / "constraints.txt"), "torch")
        run(*install, str(ROOT / "constraints.txt"), str(wheel))
        run(python, "-c", "import drkm.cli" + USE, cwd=place)


if __name__ == "__main__":
    main()
