"""Refusals as the client's typed errors, and how often the client tries."""

import openai
import pytest
from conftest import admin, chat, nano


def refused(b, kind, call, *, status, code, param=None, calls=1):
    before = b.calls
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert (error.status_code, error.code, error.param) == (status, code, param)
    assert b.calls - before == calls, "requests that left"
    assert error.type and error.body["message"], "an error tells what is wrong"
    assert b.key not in error.response.text, "and nobody's key"


def create(b, body, **options):
    return lambda: b.client.with_options(**options).chat.completions.create(**body)


@pytest.mark.parametrize(
    "headers, code",
    [
        pytest.param(lambda key: {"Authorization": "Bearer sk-unknown"}, "invalid_api_key", id="an unknown key"),
        pytest.param(
            lambda key: {"Authorization": openai.Omit(), "x-auth-token": key},
            "missing_api_key",
            id="a key where nobody looks for it",
        ),
        pytest.param(lambda key: {"Authorization": "Basic " + key}, "missing_api_key", id="a key that is no bearer's"),
        pytest.param(
            lambda key: {"Authorization": "Bearer sk-unknown", "x-api-key": key},
            "invalid_api_key",
            id="a wrong bearer beside a right key",
        ),
    ],
)
def test_401(setup, headers, code):
    b = setup()
    body = {**chat("fake"), "extra_headers": headers(b.key)}
    refused(b, openai.AuthenticationError, create(b, body), status=401, code=code)


def test_key_in_the_other_headers(setup):
    b = setup()
    for name in ["x-api-key", "api-key", "x-litellm-api-key"]:
        headers = {"Authorization": openai.Omit(), name: b.key}
        raw = b.client.chat.completions.with_raw_response.create(**chat("fake"), extra_headers=headers)
        b.book(raw.headers, raw.parse().usage)
    b.audit()


def test_blocked_key(setup):
    b = setup()
    admin("POST", "/key/block", {"key": b.key})
    refused(b, openai.AuthenticationError, create(b, chat("fake")), status=401, code="blocked_api_key")


def test_403_model_that_the_list_of_the_key_does_not_name(setup):
    b = setup(models=["fake"])
    call = create(b, chat("house-name"))
    refused(b, openai.PermissionDeniedError, call, status=403, code="model_not_allowed", param="model")


def test_404_unknown_model_and_route(setup):
    b = setup()
    call = create(b, chat("nobody-serves-this"))
    refused(b, openai.NotFoundError, call, status=404, code="model_not_found", param="model")
    refused(b, openai.NotFoundError, lambda: b.client.files.retrieve("file-1"), status=404, code="unknown_route")


@pytest.mark.parametrize(
    "change, param",
    [
        pytest.param({"messages": "Hello!"}, "messages", id="messages of the wrong type"),
        pytest.param({"messages": openai.Omit()}, "messages", id="no messages"),
        pytest.param({"model": openai.Omit()}, "model", id="no model"),
        pytest.param({"max_tokens": "many"}, "max_tokens", id="a cap that is no number"),
        pytest.param({"extra_body": {"stream": "yes"}}, "stream", id="stream that is no boolean"),
    ],
)
def test_400(setup, change, param):
    b = setup()
    call = create(b, {**chat("fake"), **change})
    refused(b, openai.BadRequestError, call, status=400, code="invalid_body", param=param)


def test_error_of_a_provider_passes_and_is_tried_again(setup):
    b = setup()
    call = create(b, chat("fake-500"), max_retries=1)
    refused(b, openai.InternalServerError, call, status=500, code="fake_error", calls=2)


def test_429_the_money_is_spent_and_the_client_does_not_try_again(setup):
    b = setup(max_budget=0.03)
    # Its hold and its cost are 0.03 dollars exactly.
    body = {"model": "three-cents", "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 91}
    create(b, body)()
    for stream in [False, True]:
        call = create(b, {**body, "stream": stream})
        refused(b, openai.RateLimitError, call, status=429, code="budget_exceeded")
    assert [nano(row) for row in b.rows(1)] == [30_000_000]
