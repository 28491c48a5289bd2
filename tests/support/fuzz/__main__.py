"""Run cases: `python -m fuzz SEED FIRST LAST FOLDER`. Prints the number of each case before it runs it.

A process of its own, so that its memory can be limited and a crash is noticed.
"""

import resource
import signal
import sys
from pathlib import Path

from fuzz.cases import LOOSE, SEED, run, try_case
from ghostpoi.data.synthetic_files import write_city

MEMORY = 1_500_000_000  # bytes beyond what the process has after its first release
SECONDS = 120  # a case that takes longer hangs


def main() -> None:
    seed, first, last, folder = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    clean, release = folder / "clean.txt", folder / "release"
    write_city(clean, 8, 30, 10, 1)
    code, _, err = run("protect", clean, "-o", release, "--method", "random", "--seed", SEED, *LOOSE)
    assert code == 0, err
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGALRM, _hangs)
    for index in range(first, last):
        print(index, file=sys.__stdout__, flush=True)
        signal.alarm(SECONDS)
        result = try_case(index, seed, folder, release, clean)
        print(result.replace("\n", "\n    "), file=sys.__stdout__, flush=True)
    signal.alarm(0)


def _hangs(*_: object) -> None:
    raise TimeoutError(f"it takes more than {SECONDS} s")


main()
