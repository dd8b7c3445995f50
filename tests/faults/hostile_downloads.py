"""`lra data fetch` against a server that misbehaves in every way we could think of.

    LRA_PROGRAM=build/lra python3 tests/faults/hostile_downloads.py [--quick]

Every way of shared/hostile_server.py meets a download from the start and one that goes on from a half
that had arrived. The file comes whole, with its digest, and exit code 0; or there is exit code 74, one
line, and nothing under the final names. Never longer than a minute. Where no digest is known, answers
that are no whole file by HTTP's own words must be refused too. --quick takes every fifth case and records
nothing; the full form writes docs/results/scorecard/21-downloads.json.
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import hostile_archives
from shared import hostile_archives as archives
from shared import hostile_server
from shared import result

PROGRAM = os.path.realpath(os.environ["LRA_PROGRAM"])
MAX_SECONDS, AT_ONCE = 60, 8
# Task and published file: of the first somebody has published the digest.
DIGESTED, PLAIN = ("text", "aclImdb_v1.tar.gz"), ("retrieval", "lra_release.gz")
NO_WHOLE_FILE = ("status 204", "status 304", "206 with two ranges", "416 always", "redirect without a place",
                 "shorter than it says", "empty", "nothing at all")


def fetch(url, folder, task, digest):
    """Exit code (None: had to be killed), seconds, what was said."""
    known = ["--sha256", digest] if task == DIGESTED[0] else []
    command = [PROGRAM, "data", "fetch", task, "--out", str(folder / "prepared"), *known,
               "--timeout", "1", "--quiet", "--url", url]
    begin = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, timeout=MAX_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None, MAX_SECONDS, ""
    return done.returncode, time.monotonic() - begin, done.stderr.decode("utf-8", "replace")


def judge(name, code, text, raw, content):
    """Problems with one download."""
    prepared = raw.parent / "prepared"
    if code == 0:
        good = raw.exists() and raw.read_bytes() == content and prepared.exists()
        return [] if good else ["exit code 0, and another file than was published"]
    wrong = []
    if name.startswith("good"):
        wrong.append("a clumsy but honest server was given up")
    if code != 74:
        wrong.append(f"exit code {code}")
    if text.count("\n") != 1 or any(ord(c) < 32 and c != "\n" for c in text):
        wrong.append("not one clean line")
    if raw.exists() or prepared.exists():
        wrong.append("something stands under a final name")
    return [f"{problem}: {text.strip()[-300:]!r}" for problem in wrong]


def one(number, begun, source, server, digest, root):
    """Runs one case; returns its name, exit code, seconds and problems."""
    name, (task, file) = list(hostile_server.CASES)[number], source
    folder = pathlib.Path(root) / f"{number}-{begun}-{task}"
    folder.mkdir()
    if begun:
        (folder / f"{file}.part").write_bytes(server.content[:len(server.content) // 2])
    url = f"http://127.0.0.1:{server.server_address[1]}/{number}/{task}{begun}"
    code, seconds, text = fetch(url, folder, task, digest)
    full_name = f"{name}, {'begun' if begun else 'fresh'}, {task}"
    return full_name, code, seconds, judge(name, code, text, folder / file, server.content)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    # Random bytes in a skipped entry make it long enough to be cut in many places.
    files = {**hostile_archives.reviews(), "README": hashlib.shake_128(b"lra").digest(20000)}
    content = archives.nested(archives.good_tar(files) + bytes(1024), 1)
    digest = hashlib.sha256(content).hexdigest()
    server = hostile_server.Server(content)
    jobs = [(number, begun, source) for number, name in enumerate(hostile_server.CASES) for begun in (0, 1)
            for source in (DIGESTED, PLAIN) if source == DIGESTED or name in NO_WHOLE_FILE]
    with tempfile.TemporaryDirectory() as root:
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            ends = list(pool.map(lambda job: one(*job, server, digest, root),
                                 jobs[::5] if quick else jobs))
    problems = [f"{name}: {text}" for name, _, _, found in ends for text in found]
    came = sum(code == 0 for _, code, _, _ in ends)
    slowest = max(ends, key=lambda end: end[2])
    print(f"{len(ends)} cases, {came} files came whole, {len(ends) - came} were refused; "
          f"slowest: {slowest[0]}, {slowest[2]:.1f} s")
    for problem in problems:
        print("FAILED:", problem, file=sys.stderr)
    if not quick:
        figures = {"cases": len(ends), "whole and right": came, "clear error": len(ends) - came,
                   "wrong": len(problems), "slowest": f"{slowest[2]:.1f} s"}
        result.record(21, "downloads", figures,
                      "red" if problems or len(ends) < 100 else "green",
                      "LRA_PROGRAM=build/lra python3 tests/faults/hostile_downloads.py")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
