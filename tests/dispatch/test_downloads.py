"""Artifacts: fetched without showing the token, and opened as what foreign code may have written."""

from __future__ import annotations

import contextlib
import errno
import io
import socket
import struct
import tempfile
import threading
import time
import tracemalloc
import warnings
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dispatch.kept_results import archive, handle, keep, record, start_run
from tests.github_double import routes, server
from tests.github_double.routes import Reply

from runner_e2e.dispatch import github_api
from runner_e2e.dispatch.downloads import Results, fetch_results, records_below, records_in
from runner_e2e.dispatch.github_api import RefusedDownloadError
from runner_e2e.dispatch.records import moment_of
from runner_e2e.errors import GitHubError
from runner_e2e.report.fields import InvalidDocumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.github_double.server import Server
    from tests.github_double.state import State

    from runner_e2e.dispatch.github_api import GitHubApi

ENTRY = f"result-{handle(1)}/result.json"


def test_a_run_of_256_cells_takes_two_calls(double: Server, api: GitHubApi) -> None:
    run = start_run(double)
    keep(double, run, archive((f"result-{handle(n)}/result.json", record(n)) for n in range(256)))
    found = fetch_results(api, run.id)
    assert (found.state, found.problems) == ("read", ())
    assert [each.handle for each in found.records] == [handle(n) for n in range(256)]
    assert {each.cost for each in found.records} == {250_000}
    assert [entry.path.rpartition("/")[2] for entry in double.log] == [
        "artifacts", "zip", str(run.artifacts[0].id)
    ]  # fmt: skip
    assert "secret-id" not in repr(found)


def test_an_enterprise_server(double: Server, connect: Callable[..., GitHubApi]) -> None:
    """Its API lies below a path, and its storage can be the same host: that gets no token either."""
    run = start_run(double)
    keep(double, run, archive([(ENTRY, record(1))]))
    assert len(fetch_results(connect(url=f"{double.url}/api/v3"), run.id).records) == 1


def test_a_storage_that_is_the_api_s_own_host_gets_no_token(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = kept(double)
    number = double.state.runs[run].artifacts[0].id
    answering(monkeypatch, {"/zip": Reply(status=302, headers={"Location": f"/storage/{number}?sig=x"})})
    assert len(fetch_results(api, run).records) == 1


def test_what_a_run_did_not_keep(double: Server, api: GitHubApi) -> None:
    run = start_run(double)
    keep(double, run, b"x", name="results-of-others")
    assert fetch_results(api, run.id).state == "missing"
    del double.state.runs[run.id]
    assert fetch_results(api, run.id) == Results(state="missing", gone=True)


def test_a_server_that_does_not_choose_by_name(double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start_run(double)
    for number in range(120):
        keep(double, run, b"x", name=f"result-{handle(number)}")
    keep(double, run, archive([(ENTRY, record(1))]))
    real = routes.answer

    def answer(state: State, asked: routes.Request) -> Reply:
        asked.query.pop("name", None)
        return real(state, asked)

    monkeypatch.setattr(server, "answer", answer)
    assert len(fetch_results(api, run.id).records) == 1


def test_a_list_that_lacks_an_artifact_is_not_believed(double: Server, api: GitHubApi) -> None:
    run = start_run(double)
    keep(double, run, archive([(ENTRY, record(1))]))
    double.faults.order("late-list", "GET", "artifacts$")
    assert len(fetch_results(api, run.id).records) == 1
    for _ in range(2):
        double.faults.order("late-list", "GET", "artifacts$")
    with pytest.raises(GitHubError, match="fewer artifacts"):
        fetch_results(api, run.id)


@pytest.mark.parametrize("known", [True, False])
def test_an_artifact_that_has_expired(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """Also where it expires between the list and the download."""
    run = start_run(double)
    kept = keep(double, run, archive([(ENTRY, record(1))]), expired=known)
    if not known:
        double.after = lambda _: setattr(kept, "expired", True)
    found = fetch_results(api, run.id)
    assert (found.state, found.records) == ("expired", ())
    assert "has expired" in found.problems[0]
    assert not double.requests("GET", "/storage/")


def test_results_of_several_attempts_of_a_run(double: Server, api: GitHubApi) -> None:
    run = start_run(double)
    keep(double, run, archive([(ENTRY, record(1))]))
    double.state.clock.sleep(3600)
    keep(double, run, archive([(ENTRY, record(1)), (ENTRY.replace("1/", "1/attempt-2/"), record(1, attempt=2))]))
    assert [each.attempt for each in fetch_results(api, run.id).records] == [1, 1, 2]
    start = moment_of("2026-11-30T01:30:00Z")
    assert [each.attempt for each in fetch_results(api, run.id, before=start).records] == [1]
    run.artifacts[0].expired = True
    assert (fetch_results(api, run.id).state, len(fetch_results(api, run.id).records)) == ("expired", 2)


# The way there


def answering(monkeypatch: pytest.MonkeyPatch, replies: dict[str, Reply], *, once: bool = False) -> None:
    """What the double answers to paths with these parts, instead of what it would."""

    def answer(state: State, request: routes.Request) -> Reply:
        part = next((part for part in replies if part in request.path), None)
        if part is None:
            return routes.answer(state, request)
        return replies.pop(part) if once else replies[part]

    monkeypatch.setattr(server, "answer", answer)


def kept(double: Server) -> int:
    run = start_run(double)
    keep(double, run, archive([(ENTRY, record(1))]))
    return run.id


@pytest.mark.parametrize("fault", ["lost-502", "lost-hang-up", "done-cut", "done-hang-up", "done-502", "stale-404"])
def test_the_storage_is_asked_again_by_a_new_address(double: Server, api: GitHubApi, fault: str) -> None:
    run = kept(double)
    for _ in range(2):
        double.faults.order(fault, "GET", "^/storage/")
    assert len(fetch_results(api, run).records) == 1
    assert double.faults.fired[fault] == 2
    assert len(double.requests("GET", "/zip")) == 3


def test_a_storage_that_does_not_answer(double: Server, api: GitHubApi) -> None:
    run = kept(double)
    for _ in range(3):
        double.faults.order("done-502", "GET", "^/storage/")
    with pytest.raises(GitHubError, match="cannot be fetched") as caught:
        fetch_results(api, run)
    assert "its host answered 502" in str(caught.value)
    assert "sig=" not in str(caught.value)


@pytest.mark.parametrize(
    "place",
    ["http://storage.example/x?sig=y", "//storage.example/x?sig=y", "ftp://127.0.0.1/x", "file:///etc/passwd",
     "https://user:secret@storage.example/x", "https://", "http://127.0.0.1@storage.example/x"],
)  # fmt: skip
def test_an_address_that_is_not_trusted(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    run = kept(double)
    answering(monkeypatch, {"/zip": Reply(status=302, headers={"Location": place})})
    found = fetch_results(api, run)
    assert found.state == "refused"
    assert "not https" in found.problems[0]
    assert "sig=" not in str(found)
    assert not double.requests("GET", "/storage/")


def test_a_storage_that_moves(double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch) -> None:
    run = kept(double)
    number = double.state.runs[run].artifacts[0].id
    first = f"{double.url.replace('127.0.0.1', 'localhost')}/storage/first"
    moved = Reply(status=307, headers={"Location": f"/storage/{number}?sig=x"})
    answering(monkeypatch, {"/zip": Reply(status=302, headers={"Location": first}), "/first": moved})
    assert len(fetch_results(api, run).records) == 1
    assert [entry.path for entry in double.requests("GET", "/storage/")] == ["/storage/first", f"/storage/{number}"]


def test_a_storage_that_moves_for_ever(double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch) -> None:
    run = kept(double)
    answering(monkeypatch, {"/storage/": Reply(status=302, headers={"Location": "/storage/again"})})
    assert "from host to host" in fetch_results(api, run).problems[0]
    assert len(double.requests("GET", "/storage/")) == 3


def test_a_storage_that_leads_to_another_scheme(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = kept(double)
    answering(monkeypatch, {"/storage/": Reply(status=302, headers={"Location": "http://storage.example/x"})})
    assert "not https" in fetch_results(api, run).problems[0]


def test_nobody_s_password_goes_to_the_storage(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The double says so itself, where it sees an ``Authorization``."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine localhost login alice password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    assert len(fetch_results(api, kept(double)).records) == 1


def test_the_double_notices_a_token_at_the_storage(double: Server, api: GitHubApi) -> None:
    number = double.state.runs[kept(double)].artifacts[0].id
    api.get(f"/storage/{number}", accept={400})
    assert double.defects == [f"GET /storage/{number}: the token went to another host"]
    double.defects.clear()


def test_a_moved_repository_is_followed_and_the_file_is_not_asked_of_the_api(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = kept(double)
    number = double.state.runs[run].artifacts[0].id
    moved = Reply(status=301, headers={"Location": f"/repos/octo/evals/actions/artifacts/{number}/zip?moved=1"})
    answering(monkeypatch, {"/zip": moved}, once=True)
    assert len(fetch_results(api, run).records) == 1
    assert [entry.query.get("moved") for entry in double.requests("GET", "/zip")] == [None, "1"]


@pytest.mark.parametrize("reply", [Reply(status=204), Reply(data={}), Reply(status=302)])
def test_a_file_without_an_address(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    run = kept(double)
    answering(monkeypatch, {"/zip": reply})
    with pytest.raises(GitHubError, match="without a file"):
        fetch_results(api, run)


def test_a_file_that_is_larger_than_it_was_said_to_be(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = kept(double)
    monkeypatch.setattr("runner_e2e.dispatch.downloads._MOST_ARCHIVE", 500)
    assert "more than 500" in fetch_results(api, run).problems[0]
    assert not double.requests("GET", "/zip")
    monkeypatch.setattr("tests.github_double.shapes.len", lambda _: 10, raising=False)
    found = fetch_results(api, run)
    assert (found.state, found.problems[0].rpartition(": ")[2]) == (
        "refused", "a file of GitHub's has more than 500 bytes"
    )  # fmt: skip


def test_a_file_that_takes_for_ever(double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch) -> None:
    run = kept(double)
    monkeypatch.setattr(github_api, "_LONGEST_DOWNLOAD", -1.0)
    with pytest.raises(GitHubError, match="cannot be fetched") as caught:
        fetch_results(api, run)
    assert "it took longer" in str(caught.value)


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def host() -> Iterator[Callable[..., str]]:
    """Hosts of files that send these *parts*, with a *pause* after each."""
    with contextlib.ExitStack() as stack:

        def listen(*parts: bytes, pause: float = 0.0) -> str:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            thread = threading.Thread(target=serve, args=(listener, parts, pause), daemon=True)
            thread.start()
            return f"http://127.0.0.1:{listener.getsockname()[1]}/file?sig=x"

        yield listen


def serve(listener: socket.socket, parts: tuple[bytes, ...], pause: float) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection = listener.accept()[0]
            with connection, contextlib.suppress(OSError):
                connection.recv(65_536)
                for part in parts:
                    connection.sendall(part)
                    time.sleep(pause)


def download(double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch, place: str, *, most: int = 100) -> bytes:
    answering(monkeypatch, {"/zip": Reply(status=302, headers={"Location": place})})
    file = io.BytesIO(b"what was there before, which is longer")
    api.download("actions/artifacts/1/zip", file, most=most)
    return file.getvalue()


def test_a_file_in_chunks(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch, host: Callable[..., str]
) -> None:
    place = host(CHUNKED, b"5\r\nhello\r\n", b"3\r\nabc\r\n", b"0\r\n\r\n")
    assert download(double, api, monkeypatch, place) == b"helloabc"


@pytest.mark.parametrize(
    "parts",
    [(CHUNKED, b"5\r\nhello\r\n"), (CHUNKED, b"zz\r\n"), (HEAD + b"Content-Length: 50\r\n\r\n", b"hello"), (b"",)],
)  # fmt: skip
def test_a_file_that_is_cut_off_is_no_file(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch, host: Callable[..., str], parts: tuple[bytes, ...]
) -> None:
    with pytest.raises(GitHubError, match="cannot be fetched") as caught:
        download(double, api, monkeypatch, host(*parts))
    assert "sig=" not in str(caught.value)


def test_a_host_that_sends_a_byte_now_and_then(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch, host: Callable[..., str]
) -> None:
    monkeypatch.setattr(github_api, "_LONGEST_DOWNLOAD", 0.3)
    place = host(HEAD + b"Content-Length: 5000\r\n\r\n", *[b"x"] * 5000, pause=0.02)
    start = time.monotonic()
    with pytest.raises(GitHubError, match="cannot be fetched"):
        download(double, api, monkeypatch, place, most=5000)
    assert time.monotonic() - start < 30


def test_a_file_without_an_end(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch, host: Callable[..., str]
) -> None:
    place = host(CHUNKED, *[b"5\r\nhello\r\n"] * 100)
    with pytest.raises(RefusedDownloadError, match="more than 100 bytes"):
        download(double, api, monkeypatch, place)


def test_a_host_that_is_not_there(double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody else gets the port meanwhile
        place = f"http://127.0.0.1:{taken.getsockname()[1]}/file?sig=x"
        with pytest.raises(GitHubError, match="cannot be fetched") as caught:
            download(double, api, monkeypatch, place)
    assert "sig=" not in str(caught.value)


def test_a_file_that_is_not_the_one_that_was_kept(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = kept(double)
    answering(monkeypatch, {"/storage/": Reply(raw=archive([(ENTRY, record(1, cost=0.0))]))})
    found = fetch_results(api, run)
    assert (found.state, found.records) == ("refused", ())
    assert "its digest differs" in found.problems[0]


@pytest.mark.parametrize("broken", [b"", b"PK", archive([(ENTRY, record(1))])[:-9]])
def test_a_file_that_came_broken_once(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch, broken: bytes
) -> None:
    """A proxy that tells no length cuts off unseen."""
    run = kept(double)
    answering(monkeypatch, {"/storage/": Reply(raw=broken)}, once=True)
    found = fetch_results(api, run)
    assert (found.state, len(found.records), found.problems) == ("read", 1, ())


def test_a_full_disk(double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch) -> None:
    run = kept(double)
    monkeypatch.setattr("runner_e2e.dispatch.downloads._IN_MEMORY", 1)

    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(GitHubError, match="no place for an artifact") as caught:
        fetch_results(api, run)
    assert "No space left on device" in str(caught.value)


def test_an_archive_that_does_not_fit_into_memory(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner_e2e.dispatch.downloads._IN_MEMORY", 1)
    assert len(fetch_results(api, kept(double)).records) == 1


def test_an_old_server_tells_no_digest(double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch) -> None:
    run = kept(double)

    def without(state: State, asked: routes.Request) -> Reply:
        reply = routes.answer(state, asked)
        for each in reply.data["artifacts"] if isinstance(reply.data, dict) and "artifacts" in reply.data else ():
            del each["digest"]
        return reply

    monkeypatch.setattr(server, "answer", without)
    assert len(fetch_results(api, run).records) == 1


# The archive


def opened(content: bytes) -> tuple[list[str], list[str]]:
    records, problems = records_in(io.BytesIO(content))
    assert "secret-id" not in repr((records, problems))
    return [each.handle for each in records], problems


def info(name: str, **attributes: object) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.compress_type = zipfile.ZIP_DEFLATED
    for attribute, value in attributes.items():
        setattr(made, attribute, value)
    return made


@pytest.mark.parametrize(
    "name",
    ["result.json", "attempt-2/result.json", f"{handle(1)}/result.json", f"result-{handle(1)}/result.json",
     f"result-{handle(1)}/attempt-3/result.json"],
)  # fmt: skip
def test_where_records_lie(name: str) -> None:
    assert opened(archive([(name, record(1))])) == ([handle(1)], [])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../result.json", "leads out"),
        ("/etc/result.json", "leads out"),
        ("a/../../result.json", "leads out"),
        ("a//result.json", "leads out"),
        ("..\\result.json", "leads out"),
        ("a/results.zip", "no result record"),
        ("a/result.json.sh", "no result record"),
        (f"result-{handle(2)}/result.json", f"one of {handle(1)}"),
        ("secret-id/other.json", "no result record"),
    ],
)
def test_an_entry_in_a_strange_place_costs_only_itself(name: str, why: str) -> None:
    handles, problems = opened(archive([(name, record(1)), (f"result-{handle(3)}/result.json", record(3))]))
    assert handles == [handle(3)]
    assert len(problems) == 1
    assert why in problems[0]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"{", "not JSON"),
        (b"[]", "no JSON object"),
        (b"\xff", "not UTF-8"),
        (b"{}", "has no schema"),
        (record(1).replace(b"/v1", b"/v9", 1), "is not of the schema"),
        (record(1).replace(handle(1).encode(), b"secret-id"), "names no cell"),
        (record(1, attempt=0), "names no cell"),
        (record(1, cost=1e12), "a cost that cannot be"),
        (record(1).replace(b'"cost_usd": 0.25', b'"cost_usd": -1'), "cost_usd"),
        (record(1).replace(b'"cost_usd": 0.25', b'"cost_usd": NaN'), "NaN"),
        (record(1).replace(b'"cost_usd"', b'"secret-id"'), "unknown field …"),
        (b'{"secret-id": 1, "secret-id": 2}', "stands twice"),
        (b"[" * 1_000_000, "nested too deeply"),
    ],
)
def test_a_record_that_is_none(content: bytes, why: str) -> None:
    handles, (problem,) = opened(archive([(ENTRY, content)]))
    assert handles == []
    assert why in problem
    assert problem.startswith(f"{ENTRY} is left out")


def test_two_files_of_one_name_are_believed_both_not() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        content = archive([(ENTRY, record(1)), (ENTRY, record(1, cost=0.0))])
    handles, problems = opened(content)
    assert handles == []
    assert [problem.rpartition(": ")[2] for problem in problems] == ["2 files have this name"] * 2


def test_encrypted() -> None:
    content = bytearray(archive([(ENTRY, record(1))]))
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        at = content.index(signature) + offset
        content[at] |= 1
    assert "encrypted" in opened(bytes(content))[1][0]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_in_another_way(method: int) -> None:
    assert "compressed in a way" in opened(archive([(ENTRY, record(1))], method=method))[1][0]


def test_stored_as_it_is() -> None:
    assert opened(archive([(ENTRY, record(1))], method=zipfile.ZIP_STORED))[0] == [handle(1)]


def test_a_large_file_that_says_so() -> None:
    bomb = archive([(ENTRY, b" " * (5 * 1024 * 1024))])
    assert len(bomb) < 10_000
    assert "more than 4,194,304 bytes" in opened(bomb)[1][0]


def test_a_large_file_that_says_it_is_small() -> None:
    content = bytearray(archive([(ENTRY, b" " * (64 * 1024 * 1024))]))
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = struct.pack("<L", 1000)
    tracemalloc.start()
    handles, problems = opened(bytes(content))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert handles == []
    assert "is damaged" in problems[0] or "is empty" in problems[0]
    assert most < 16 * 1024 * 1024


def test_many_large_files(monkeypatch: pytest.MonkeyPatch) -> None:
    content = archive((f"result-{handle(n)}/result.json", b" " * (4 * 1024 * 1024)) for n in range(20))
    assert len(content) < 100_000
    monkeypatch.setattr("runner_e2e.dispatch.downloads._MOST_UNPACKED", 16 * 1024 * 1024)
    with pytest.raises(InvalidDocumentError, match="unpacks to more than"):
        opened(content)


def test_files_that_lie_over_one_another() -> None:
    """A bomb without nesting: many entries of the table name one content."""
    one = archive([(ENTRY, b" " * (1024 * 1024))])
    start, end = one.index(b"PK\x01\x02"), one.index(b"PK\x05\x06")
    entry = one[start:end]
    table = b"".join(entry.replace(ENTRY.encode(), f"result-{handle(n)}/result.json".encode()) for n in range(2, 2002))
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 2000, 2000, len(table), start, 0)
    handles, problems = opened(one[:start] + table + tail)
    assert handles == []
    assert len(problems) == 2000


@pytest.mark.parametrize(
    ("entries", "directory"), [(20_001, 100), (1, 3 * 1024 * 1024), (65_535, 100), (1, 0xFFFFFFFF)]
)
def test_a_table_that_is_too_long_is_not_read(entries: int, directory: int) -> None:
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, entries, entries, directory, 0, 0)
    with pytest.raises(InvalidDocumentError, match="lists more than"):
        opened(b"PK\x03\x04" + tail)


def test_a_large_archive_of_the_other_form() -> None:
    one = archive([(ENTRY, record(1))])
    at = one.index(b"PK\x05\x06")
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)
    with pytest.raises(InvalidDocumentError, match="lists more than"):
        opened(one[:at] + locator + one[at:])


@pytest.mark.parametrize("content", [b"", b"PK", b"<html>", b"PK\x05\x06", b"x" * 100_000])
def test_no_archive(content: bytes) -> None:
    with pytest.raises(InvalidDocumentError, match="no zip archive"):
        opened(content)


def test_an_archive_that_was_cut_off() -> None:
    whole = archive((f"result-{handle(n)}/result.json", record(n)) for n in range(20))
    for length in range(0, len(whole), 97):
        with pytest.raises(InvalidDocumentError):
            opened(whole[:length])


@given(st.data())
def test_no_damage_ends_in_a_crash_or_another_record(data: st.DataObject) -> None:
    """A flipped bit makes a problem or an unchanged record, and never another one: the checksums see to it."""
    content = bytearray(archive((f"result-{handle(n)}/result.json", record(n)) for n in range(3)))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        records, _ = records_in(io.BytesIO(bytes(content)))
    except InvalidDocumentError:
        return
    assert {(each.handle, each.cost) for each in records} <= {(handle(n), 250_000) for n in range(3)}


@given(st.binary(max_size=300))
def test_any_bytes(content: bytes) -> None:
    with pytest.raises(InvalidDocumentError):
        opened(content)
    with pytest.raises(InvalidDocumentError):
        opened(content + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 46, 0, 0))


# A directory


def test_records_below_a_directory(tmp_path: Path) -> None:
    for number in range(3):
        folder = tmp_path / f"result-{handle(number)}" / "attempt-1"
        folder.mkdir(parents=True)
        (folder / "result.json").write_bytes(record(number))
    (tmp_path / "result-cell-x").mkdir()
    (tmp_path / "result-cell-x" / "result.json").symlink_to("/etc/hostname")
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "result.json").write_bytes(b" " * (4 * 1024 * 1024 + 1))
    found = records_below(tmp_path)
    assert [each.handle for each in found.records] == [handle(n) for n in range(3)]
    assert sorted(problem.rpartition(": ")[2] for problem in found.problems) == [
        "it has more than 4,194,304 bytes", "it is no regular file"
    ]  # fmt: skip
    assert records_below(tmp_path / "none").state == "missing"


def test_memory_stays_small(double: Server, connect: Callable[..., GitHubApi]) -> None:
    """256 records, two attempts each, with reports as large as real ones."""
    report = ({"launch": "x" * 8000},)
    entries = [
        (f"result-{handle(n)}/attempt-{a}/result.json", record(n, attempt=a, sandbox=report))
        for n in range(256) for a in (1, 2)
    ]  # fmt: skip
    run = start_run(double)
    keep(double, run, archive(entries))
    del entries
    fetch_results(connect(), kept(double))  # which loads what the first fetch of a process needs
    tracemalloc.start()
    found = fetch_results(connect(), run.id)
    kept_now, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.records) == 512
    assert kept_now < 2 * 1024 * 1024
    assert most < 16 * 1024 * 1024


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"attempt": 2**53 - 1}, "no attempt"),
        ({"attempt": 101}, "no attempt"),
        ({"started": "yesterday"}, "when the attempt began"),
        ({"started": "2026-11-30T00:00:00"}, "when the attempt began"),
    ],
)
def test_a_record_that_no_engine_writes(changes: dict[str, Any], why: str) -> None:
    """Foreign code can write any: attempts that left no record count as unknown cost, so not as many as it likes."""
    content = archive([(f"{handle(1)}/result.json", record(1, **changes))])
    records, problems = records_in(io.BytesIO(content))
    assert records == []
    assert why in problems[0]
