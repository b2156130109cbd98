"""Whole answers, the model list, and what was recorded, byte for byte."""

import json

import pytest
from conftest import chat, played, received

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Wetter in °C",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


@pytest.mark.parametrize(
    "model, echoed",
    [
        pytest.param("fake", "fake", id="a model by its own name"),
        pytest.param("house-name", "fake-renamed", id="the provider's name for a model comes back, not ours"),
        pytest.param("fake-out-5", "fake-out-5", id="a wildcard's model"),
    ],
)
def test_whole_answer(setup, model, echoed):
    b = setup(max_budget=1)
    raw = b.client.chat.completions.with_raw_response.create(**chat(model))
    answer = raw.parse()
    b.book(raw.headers, answer.usage)
    assert answer.id.startswith("chatcmpl-")
    assert answer.model == echoed
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens == len(answer.choices[0].message.content.split())
    assert answer.usage.prompt_tokens > 0
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert raw.headers["x-penstock-response-cost"]
    assert raw.headers["x-penstock-output-cap"], "the client gave no cap"
    b.audit()
    [row] = b.rows(1)
    assert (row["upstream_id"], row["stream"]) == (answer.id, False)


def test_models_are_those_that_the_key_may_use(setup):
    b = setup(models=["fake", "house-name"])
    assert sorted(model.id for model in b.client.models.list()) == ["fake", "house-name"]


@pytest.mark.parametrize("name", ["tools", "unicode"])
def test_bytes_pass_unchanged_in_both_directions(setup, name):
    b = setup()
    text = "Grüße aus 東京 👩‍👩‍👧‍👦 \u2028 <&> \u0007"
    body = {**chat(f"played-{name}"), "tools": TOOLS, "extra_body": {"x_vendor": {"weight": 1.5, "text": text}}}
    raw = b.client.chat.completions.with_raw_response.create(**body)
    assert raw.content == played(f"{name}.json")
    usage = raw.parse().usage
    assert received(b.book(raw.headers, usage)) == b.sent
    assert json.loads(b.sent)["x_vendor"]["text"] == text

    create = b.client.chat.completions.with_streaming_response.create
    with create(**body, stream=True, stream_options={"include_usage": True}) as raw:
        assert raw.read() == played(f"{name}.sse")
    assert received(b.book(raw.headers, usage)) == b.sent
    b.audit()
