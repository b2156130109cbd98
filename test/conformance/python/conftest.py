"""What the tests share: a key of its own for each test, a client with it, and the
ledger's view of what that client did."""

import json
import os
import time
import urllib.parse
import urllib.request

import openai
import pytest

BASE = os.environ["CONFORMANCE_BASE_URL"]
ADMIN = os.environ["CONFORMANCE_ADMIN_URL"]
ADMIN_KEY = os.environ["CONFORMANCE_ADMIN_KEY"]
FAKE = os.environ["CONFORMANCE_FAKE_URL"]
PLAY = os.environ["CONFORMANCE_PLAY_URL"]

PATIENCE = 30  # seconds; bounds everything that is waited for
FAKE_INPUT = 2_000  # nano-dollars per token of the stack's models
FAKE_OUTPUT = 8_000


class Bundle:
    def __init__(self, fields):
        self.key = admin("POST", "/key/generate", fields)["key"]
        self.calls = 0  # what really left, retries included
        self.sent = b""  # the last body
        self.told = {}  # what the client was told, by request id
        http = openai.DefaultHttpxClient(event_hooks={"request": [self._count]})
        self.client = openai.OpenAI(api_key=self.key, base_url=BASE, http_client=http)

    def _count(self, request):
        self.calls += 1
        self.sent = request.content

    def book(self, headers, usage):
        """Notes what the ledger has to show for an answer."""
        request_id = headers["x-penstock-request-id"]
        self.told[request_id] = (usage.prompt_tokens, usage.completion_tokens, "success")
        return request_id

    def rows(self, n):
        """Waits until the key has n records, and returns all."""
        deadline = time.monotonic() + PATIENCE
        while True:
            rows = admin("GET", "/spend/logs?api_key=" + urllib.parse.quote(self.key))
            if len(rows) >= n:
                return rows
            assert time.monotonic() < deadline, f"there are {len(rows)} records of {n}"
            time.sleep(0.05)

    def audit(self):
        """Compares /spend/logs with what the client was told: the same requests, the
        same tokens, and their price."""
        rows = self.rows(len(self.told))
        assert len(rows) == len(self.told)
        seen = {r["request_id"]: (r["prompt_tokens"], r["completion_tokens"], r["status"]) for r in rows}
        assert seen == self.told
        for row in rows:
            assert (nano(row), row["estimated"]) == (price(row), False)


def nano(row):
    return round(row["spend"] * 1e9)


def price(row):
    return row["prompt_tokens"] * FAKE_INPUT + row["completion_tokens"] * FAKE_OUTPUT


def admin(method, path, body=None):
    """Calls the admin API."""
    headers = {"Authorization": "Bearer " + ADMIN_KEY, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(ADMIN + path, data=data, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def read(url):
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return answer.read()


def played(file):
    """An answer as it was recorded."""
    return read(f"{PLAY}/answers/{file}")


def received(request_id):
    """A body as the provider got it."""
    return read(f"{PLAY}/received/{request_id}")


def fake_row(request_id):
    """A request as the fake upstream saw it."""
    rows = [json.loads(line) for line in read(f"{FAKE}/ledger").splitlines()]
    return next(row for row in rows if row["request_id"] == request_id)


def chat(model):
    return {"model": model, "messages": [{"role": "user", "content": "How are you?"}]}


@pytest.fixture
def setup():
    """Makes a key with the given fields of /key/generate."""
    made = []

    def make(**fields):
        made.append(Bundle(fields))
        return made[-1]

    yield make
    for bundle in made:
        bundle.client.close()
