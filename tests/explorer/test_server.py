"""The live page: which requests are answered, and how."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("uvicorn")
from drkm.explorer import server
from drkm.explorer.content import Content
from explorer.subjects import digits


class Live:
    """A server in a thread, and requests to it as by a browser or by others."""

    def __init__(self, content: Content):
        self.content = content
        self.server = server.LiveServer(content)
        _, _, place, self.token, _ = self.server.address.split("/")
        self.host, port = place.split(":")
        self.port = int(port)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes, dict]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            if body is not None and "Content_Length" not in headers:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders()
            if body is not None:
                connection.send(body)
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        finally:
            connection.close()

    def question(self, what: str, question: object, **headers: str) -> tuple[int, bytes, dict]:
        return self.ask("POST", f"/{self.token}/{what}", json.dumps(question).encode(), **headers)


@pytest.fixture(scope="module")
def live():
    found = Live(Content(digits()))
    yield found
    found.server.stop()
    found.thread.join(30)
    assert not found.thread.is_alive()


def test_the_page_is_served_with_headers_that_keep_it_to_itself(live):
    status, body, headers = live.ask("GET", f"/{live.token}/")
    assert status == 200
    assert b'"live":true' in body
    assert "connect-src 'self'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


def test_it_listens_on_the_loopback_alone(live):
    assert live.host == "127.0.0.1"
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for other in others - {"127.0.0.1"}:
        with socket.socket() as probe:
            probe.settimeout(5)
            # A server that listens on all addresses would also answer on another loopback address.
            assert probe.connect_ex((other, live.port)) != 0
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.2", live.port)) != 0


def test_codes_are_decoded_as_the_model_decodes_them(live):
    codes = live.content.codes[:3] * 1.05
    status, body, _ = live.question("decode", {"codes": codes.tolist()})
    assert status == 200
    shown = np.frombuffer(body, dtype=np.uint8).reshape(3, 64)
    expected = np.clip(live.content.subject.model.inverse_transform(codes), 0, 1) * 255
    assert np.abs(shown - expected).max() <= 255 / 63 / 2 + 1


def test_strips_and_samples_are_given(live):
    status, body, _ = live.question("strips", {"codes": live.content.codes[:1].tolist()})
    assert (status, len(body)) == (200, 9 * 9 * 64)
    status, body, _ = live.question("sample", {"row": 7})
    assert (status, len(body)) == (200, 2 * 64)
    expected = live.content.subject.pictures(live.content.subject.samples[7:8])[0]
    assert np.abs(np.frombuffer(body, dtype=np.uint8)[:64] - expected).max() <= 3


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}", ""]
)
def test_another_host_is_refused(host, live):
    for method, path in (("GET", f"/{live.token}/"), ("POST", f"/{live.token}/sample")):
        status, body, _ = live.ask(method, path, b'{"row": 1}', Host=host.format(port=live.port))
        assert status in (400, 421)
        assert len(body) < 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"])
def test_another_origin_is_refused(origin, live):
    status, body, headers = live.question("sample", {"row": 1}, Origin=origin.format(port=live.port))
    assert (status, json.loads(body)) == (403, {"error": "requests of other pages are refused"})
    assert not [name for name in headers if name.startswith("access-control")]


def test_the_own_origin_is_answered_and_what_a_browser_says_of_other_sites_counts(live):
    own = f"http://127.0.0.1:{live.port}"
    assert live.question("sample", {"row": 1}, Origin=own)[0] == 200
    assert live.question("sample", {"row": 1}, Sec_Fetch_Site="same-origin")[0] == 200
    for site in ("cross-site", "same-site"):
        assert live.question("sample", {"row": 1}, Sec_Fetch_Site=site)[0] == 403


CHANGES = [lambda t: t[:-1], lambda t: t + "a", lambda t: "a" * len(t), lambda t: t.swapcase()]


@pytest.mark.parametrize("change", CHANGES)
def test_a_wrong_token_is_not_found(change, live):
    for method, path in (("GET", f"/{change(live.token)}/"), ("POST", f"/{change(live.token)}/sample")):
        status, body, _ = live.ask(method, path, b'{"row": 1}')
        assert (status, json.loads(body)) == (404, {"error": "not found"})


def test_without_a_token_nothing_is_found(live):
    for path in ("/", "/index.html", "/favicon.ico", "/sample", "//"):
        assert live.ask("GET", path)[0] in (404, 405)


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/{token}/../../../etc/passwd",
        "/{token}/..%2f..%2fetc%2fpasswd",
        "/{token}/%2e%2e/%2e%2e/etc/passwd",
        "/{token}//etc/passwd",
        "/{token}/server.py",
        "/{token}/assets/map.js",
        "/%2e%2e/{token}/",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_path_leads_to_a_file(method, path, live):
    status, body, _ = live.ask(method, path.format(token=live.token), b"{}" if method == "POST" else None)
    assert status in (404, 405)
    assert b"root:" not in body
    assert len(body) < 200


def test_a_body_of_10_mb_is_refused_before_it_is_read(live):
    status, body, headers = live.ask("POST", f"/{live.token}/decode", None, Content_Length=str(10 << 20))
    assert status == 413
    assert headers["connection"] == "close"
    assert json.loads(body)["error"] == "a request has at most 65536 bytes"


def test_a_long_body_whose_length_nobody_says_is_refused_too(live):
    with socket.create_connection((live.host, live.port), timeout=60) as stream:
        head = f"POST /{live.token}/decode HTTP/1.1\r\nHost: {live.host}:{live.port}\r\n"
        stream.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        try:
            for _ in range(160):
                stream.sendall(chunk)
        except OSError:
            pass
        else:
            pytest.fail("the server read 10 MB")


def test_a_body_that_does_not_arrive_is_not_waited_for(live, monkeypatch):
    monkeypatch.setattr(server, "MOST_SECONDS", 0.2)
    status, body, _ = live.ask("POST", f"/{live.token}/decode", None, Content_Length="100")
    assert (status, json.loads(body)["error"]) == (408, "the request did not arrive in time")


@pytest.mark.parametrize(
    ("what", "question"),
    [
        ("decode", {"codes": []}),
        ("decode", {"codes": [[1, 2]]}),
        ("decode", {"codes": [["x"] * 9]}),
        ("decode", {"codes": [[float("nan")] * 9]}),
        ("decode", {"codes": [[float("inf")] * 9]}),
        ("decode", {"codes": [[1e300] * 9]}),
        ("decode", {"codes": [[10**400] * 9]}),
        ("decode", {"codes": [[0.0] * 9] * 65}),
        ("decode", {"codes": {"a": 1}}),
        ("decode", [1, 2]),
        ("decode", None),
        ("strips", {"codes": [[0.0] * 9] * 2}),
        ("sample", {"row": -1}),
        ("sample", {"row": 120}),
        ("sample", {"row": 1.5}),
        ("sample", {"row": True}),
        ("sample", {"row": "../x"}),
        ("sample", [[[]]]),
    ],
)
def test_a_question_that_means_nothing_is_refused_with_one_sentence(what, question, live):
    status, body, _ = live.question(what, question)
    assert status == 422
    assert set(json.loads(body)) == {"error"}


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 60000])
def test_a_question_that_is_no_json_is_refused(body, live):
    assert live.ask("POST", f"/{live.token}/decode", body)[0] == 422


def test_200_questions_at_once_are_answered_one_at_a_time(live, monkeypatch):
    model, together, most, answered = live.content.subject, 0, 0, []
    plain = server.decoded

    def watched(subject, codes):
        nonlocal together, most
        together += 1
        most = max(most, together)
        found = plain(subject, codes)
        together -= 1
        answered.append(len(codes))
        return found

    monkeypatch.setattr(server, "decoded", watched)
    rows = [live.content.codes[i % 120][None] for i in range(200)]
    with ThreadPoolExecutor(200) as pool:
        found = list(pool.map(lambda row: live.question("decode", {"codes": row.tolist()}), rows))
    assert {status for status, _, _ in found} == {200}
    assert (most, len(answered)) == (1, 200)
    expected = np.clip(model.model.inverse_transform(np.vstack(rows)), 0, 1) * 255
    shown = np.array([np.frombuffer(body, dtype=np.uint8) for _, body, _ in found])
    assert np.abs(shown - expected).max() <= 255 / 63 / 2 + 1


def test_more_questions_than_may_wait_are_refused(live, monkeypatch):
    monkeypatch.setattr(server, "MOST_WAITING", 3)
    gate = threading.Event()
    monkeypatch.setattr(server, "decoded", lambda subject, codes: gate.wait(30) and np.zeros(1, np.uint8))
    with ThreadPoolExecutor(20) as pool:
        codes = {"codes": live.content.codes[:1].tolist()}
        waiting = [pool.submit(live.question, "decode", codes) for _ in range(20)]
        end = time.monotonic() + 30
        while sum(one.done() for one in waiting) < 17 and time.monotonic() < end:
            time.sleep(0.01)
        gate.set()
    statuses = sorted(one.result()[0] for one in waiting)
    assert statuses == [200] * 3 + [503] * 17


def test_without_the_extra_its_name_is_said(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ImportError, match=r"pip install 'drkm\[web\]'"):
        server.web_server()
