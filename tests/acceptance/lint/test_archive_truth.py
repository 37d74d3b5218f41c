"""Archives, compressed files, copies and clients against what a run shows: each small workflow is run and linted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.acceptance.lint.test_surface_truth import assert_agreement, step

if TYPE_CHECKING:
    from pathlib import Path

WRITTEN = 'mkdir -p out/deep\necho "$ID" > out/cell.txt\necho x > out/plain.txt\n'
NAMED = 'mkdir -p out\necho x > "out/${ID##*.}.txt"\n'


def then(script: str) -> str:
    """A second step, which has no id in its environment."""
    body = "".join(f"          {line}\n" for line in script.splitlines())
    return f"      - name: two\n        run: |\n{body}"


def handed_on(write: str, path: str, read: str) -> str:
    """Two jobs: the first writes files, of which *path* is handed on in an artifact to the second, which reads them."""
    up = f"      - uses: actions/upload-artifact@v4\n        with: {{name: kept, path: {path}}}\n"
    down = "      - uses: actions/download-artifact@v4\n        with: {name: kept}\n"
    return f"{step(write, extra=up)}  b:\n    needs: a\n    runs-on: ubuntu-latest\n    steps:\n{down}{then(read)}"


CASES = {
    # tar
    "tar, unpacked in another step": step(
        WRITTEN + "tar -C out -czf x.tgz .", extra=then("tar xzf x.tgz\ncat cell.txt")
    ),
    "tar, another file": step(WRITTEN + "tar -C out -czf x.tgz .", extra=then("tar xzf x.tgz\ncat plain.txt")),
    "tar, unpacked elsewhere": step(
        WRITTEN + "tar cf x.tar out", extra=then("mkdir in\ntar -xf x.tar -C in\ncat in/out/cell.txt")
    ),
    "tar, not unpacked there": step(
        WRITTEN + "tar cf x.tar out\nrm -r out",
        extra=then("mkdir in\ntar -xf x.tar -C in\ncat out/cell.txt || true"),
    ),
    "tar without the file": step(
        WRITTEN + "tar cf x.tar --exclude=cell.txt out\nrm -r out", extra=then("tar xf x.tar\ncat out/cell.txt || true")
    ),
    "tar with the file, without others": step(
        WRITTEN + "tar cf x.tar --exclude='pl*' out\nrm -r out", extra=then("tar xf x.tar\ncat out/cell.txt")
    ),
    "tar of one file": step(WRITTEN + "tar cf x.tar out/plain.txt\nrm -r out\ntar xf x.tar\ncat out/plain.txt"),
    "tar, first parts stripped": step(
        WRITTEN + "tar cf x.tar out\nrm -r out\ntar xf x.tar --strip-components=1\ncat cell.txt"
    ),
    "tar to standard output": step(WRITTEN + "tar -cf x.tar out\ntar -xOf x.tar out/cell.txt"),
    "tar to standard output, another file": step(WRITTEN + "tar -cf x.tar out\ntar -xOf x.tar out/plain.txt"),
    "tar through a pipe": step(WRITTEN + "mkdir in\ntar -cz out | tar -xz -C in\ncat in/out/cell.txt"),
    "tar through a redirection": step(WRITTEN + "tar -cz out > x.tgz\ntar -xzO < x.tgz"),
    "tar of names in a file": step(WRITTEN + "echo out/cell.txt > names\ntar cf x.tar -T names\ntar xOf x.tar"),
    "tar of other names in a file": step(WRITTEN + "echo out/plain.txt > names\ntar cf x.tar -T names\ntar xOf x.tar"),
    "tar, listed": step(WRITTEN + "tar cf x.tar out\ntar -tvf x.tar"),
    "tar, verbose": step(WRITTEN + "tar cvf x.tar out"),
    "tar, names listed": step(NAMED + "tar cf x.tar out\ntar -tvf x.tar"),
    "tar, names told while packed": step(NAMED + "tar -czvf x.tgz out"),
    "tar, names told while unpacked": step(NAMED + "tar -czf x.tgz out", extra=then("tar xvf x.tgz")),
    "tar, names not told": step(NAMED + "tar -czf x.tgz out", extra=then("tar xf x.tgz")),
    "tar, names of others listed": step(NAMED + "touch a\ntar cf x.tar a\ntar tf x.tar"),
    "tar, appended": step(WRITTEN + "tar cf x.tar out/plain.txt\ntar rf x.tar out/cell.txt\ntar xOf x.tar"),
    "tar, copied": step(WRITTEN + "tar cf x.tar out\ncp x.tar y.tar\nmv y.tar z.tar\ntar xOf z.tar"),
    "tar, compressed after": step(
        WRITTEN + "tar cf x.tar out\ngzip x.tar", extra=then("tar xzOf x.tar.gz out/cell.txt")
    ),
    "tar, shown as it is": step(WRITTEN + "tar cf - out | cat"),
    "tar in a function": step(
        WRITTEN + 'pack() { tar -C "$1" -czf "$2" .; }\npack out x.tgz', extra=then("tar xzOf x.tgz ./cell.txt")
    ),
    "tar in tar": step(
        WRITTEN + "tar cf x.tar out\ntar czf y.tgz x.tar\nrm -r out x.tar", extra=then("tar xf y.tgz\ntar xOf x.tar")
    ),
    "tar of a digest": step('sha256sum <<< "$ID" > sum\ntar cf x.tar sum\ntar xOf x.tar'),
    # zip
    "zip, unpacked": step(WRITTEN + "zip -qr x.zip out", extra=then("unzip -qo x.zip -d in\ncat in/out/cell.txt")),
    "zip, another file": step(WRITTEN + "zip -qr x.zip out", extra=then("unzip -qo x.zip -d in\ncat in/out/plain.txt")),
    "zip of a folder alone": step(WRITTEN + "zip -q x.zip out || true\nunzip -p x.zip || true"),
    "zip without folders": step(WRITTEN + "zip -qrj x out\nunzip -p x cell.txt"),
    "zip without the file": step(WRITTEN + "zip -qr x.zip out -x '*/cell.txt'\nunzip -p x.zip"),
    "zip, listed": step(WRITTEN + "zip -r x.zip out\nunzip -l x.zip"),
    "zip, names told while packed": step(NAMED + "zip -r x.zip out"),
    "zip, names not told": step(NAMED + "zip -qr x.zip out\nunzip -qo x.zip"),
    "zip, names listed": step(NAMED + "zip -qr x.zip out", extra=then("unzip -l x.zip")),
    "zip, names told while unpacked": step(NAMED + "zip -qr x.zip out", extra=then("unzip -o x.zip")),
    "zip of names on standard input": step(WRITTEN + "echo out/cell.txt | zip -q x.zip -@\nunzip -p x.zip"),
    # cpio
    "cpio, unpacked": step(
        WRITTEN + "printf 'out/cell.txt\\n' | cpio -o > x.cpio", extra=then("cpio -i --to-stdout < x.cpio")
    ),
    "cpio, another file": step(WRITTEN + "printf 'out/plain.txt\\n' | cpio -o > x.cpio\ncpio -i --to-stdout < x.cpio"),
    "cpio, names listed": step(NAMED + "printf '%s\\n' out/* | cpio -o -F x.cpio", extra=then("cpio -t -F x.cpio")),
    "cpio of what find gives": step(
        WRITTEN + "find out -type f | cpio -o > x.cpio\nrm -r out", extra=then("cpio -id < x.cpio\ncat out/cell.txt")
    ),
    "cpio of what find gives, another file": step(
        WRITTEN + "find out -type f | cpio -o > x.cpio\nrm -r out", extra=then("cpio -id < x.cpio\ncat out/plain.txt")
    ),
    # one file
    "gzip, opened": step(WRITTEN + "gzip out/cell.txt", extra=then("zcat out/cell.txt.gz")),
    "gzip, not opened": step(WRITTEN + "gzip out/cell.txt", extra=then("wc -c out/cell.txt.gz")),
    "gzip takes the file": step(WRITTEN + "gzip out/cell.txt\ncat out/cell.txt || true"),
    "gzip keeps the file": step(WRITTEN + "gzip -k out/cell.txt\ncat out/cell.txt"),
    "gunzip gives the file": step(WRITTEN + "gzip out/cell.txt\ngunzip out/cell.txt.gz\ncat out/cell.txt"),
    "xz through a pipe": step('xz <<< "$ID" > x.xz\nxz -dc x.xz'),
    # copies
    "a folder copied": step(WRITTEN + "cp -r out in\ncat in/cell.txt"),
    "a folder copied into one": step(WRITTEN + "mkdir in\ntouch in/x\ncp -r out in\ncat in/out/cell.txt"),
    "what is in a folder copied": step(WRITTEN + "mkdir in\ncp -r out/. in/\ncat in/cell.txt"),
    "a folder moved": step(WRITTEN + "mv out in\ncat in/cell.txt"),
    "a folder moved away": step(WRITTEN + "mv out in\ncat out/cell.txt || true"),
    "a folder removed": step(WRITTEN + "rm -rf out\ncat out/cell.txt || true"),
    # to other jobs
    "an archive in an artifact": handed_on(WRITTEN + "tar -C out -czf x.tgz .", "x.tgz", "tar xzf x.tgz\ncat cell.txt"),
    "an archive in an artifact, another file": handed_on(
        WRITTEN + "tar -C out -czf x.tgz .", "x.tgz", "tar xzf x.tgz\ncat plain.txt"
    ),
    "an archive that is not opened": handed_on(WRITTEN + "zip -qr x.zip out", "x.zip", "wc -c x.zip"),
    # files that clients and filters read
    "wget tells the addresses of a file": step(
        'echo "http://127.0.0.1:9/${ID##*.}" > urls\nwget -t1 -T1 -i urls -O /dev/null || true'
    ),
    "wget tells nothing": step(
        'echo "http://127.0.0.1:9/${ID##*.}" > urls\nwget -q -t1 -T1 -i urls -O /dev/null || true'
    ),
    "curl reads a local file": step(WRITTEN + 'curl -s "file://$PWD/out/cell.txt"'),
    "curl reads another local file": step(WRITTEN + 'curl -s "file://$PWD/out/plain.txt"'),
    "curl by settings": step(WRITTEN + 'echo "url = file://$PWD/out/cell.txt" > s\ncurl -s -K s'),
    "curl by settings, to nowhere": step(
        WRITTEN + 'printf \'url = "file://%s"\\noutput = "/dev/null"\\n\' "$PWD/out/cell.txt" > s\ncurl -s --config s'
    ),
    "envsubst of a file": step("echo 'id: $ID' > t\nenvsubst < t > filled\ncat filled"),
    "envsubst of other variables": step("echo 'id: $HOME' > t\nenvsubst < t > filled\ncat filled"),
    "envsubst of chosen variables": step("echo 'id: $ID $HOME' > t\nenvsubst '$HOME' < t > filled\ncat filled"),
    "tee, one after the other": step('echo "$ID" | tee a | tee b > /dev/null\ncat b'),
    "tee to several": step('echo "$ID" | tee a b > /dev/null\necho x | tee a > /dev/null\ncat b'),
    "tee, written over": step('echo "$ID" | tee a > /dev/null\necho x | tee a > /dev/null\ncat a'),
    "tee to a process": step('echo "$ID" | tee >(cat > a) > /dev/null\nsleep 0.3\ncat a'),
    "tee to standard error": step('echo "$ID" | tee /dev/stderr > /dev/null'),
}


@pytest.mark.parametrize("name", CASES)
def test_the_lint_names_what_a_run_shows(name: str, tmp_path: Path) -> None:
    assert_agreement(CASES[name], tmp_path)
