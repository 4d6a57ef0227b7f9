"""Print the branch coverage of the tests: of the whole package, and of the files with the most missed branches.

python tests/branches.py          after `make coverage`
python tests/branches.py FILE     for combined measurements from elsewhere
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from coverage import Coverage

#: number of files to list
FILES = 20


def measured(data_file: str) -> dict:
    """Return the JSON report of coverage."""
    with tempfile.TemporaryDirectory() as folder:
        coverage = Coverage(data_file=data_file)
        coverage.load()
        # Tests also run copies of the package in other folders.
        where = {"outfile": str(Path(folder, "report.json")), "include": ["src/drkm/*"]}
        coverage.json_report(**where, ignore_errors=True)
        return json.loads(Path(folder, "report.json").read_text())


def main() -> None:
    """Print the table."""
    found = measured(sys.argv[1] if len(sys.argv) > 1 else ".coverage")
    total, files = found["totals"], {name: file["summary"] for name, file in found["files"].items()}
    share = total["covered_branches"] / total["num_branches"]
    print(f"{share:.2%} of {total['num_branches']:,} branches, {total['missing_branches']} missed\n")
    print("| missed | of | file |\n|---:|---:|---|")
    for name in sorted(files, key=lambda name: -files[name]["missing_branches"])[:FILES]:
        print(f"| {files[name]['missing_branches']} | {files[name]['num_branches']} | `{name}` |")


if __name__ == "__main__":
    main()
