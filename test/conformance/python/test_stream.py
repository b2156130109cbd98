"""Streams: deltas, usage, tool calls, and a client that leaves."""

import asyncio
import json

import openai
import pytest
from conftest import BASE, chat, fake_row, nano, played, price


class Collected:
    """All of a stream."""

    def __init__(self, b, body):
        self.content, self.calls, self.usages, self.chunks, self.finish = "", [], [], 0, None
        raw = b.client.chat.completions.with_raw_response.create(**body, stream=True)
        self.headers = raw.headers
        for chunk in raw.parse():
            self.chunks += 1
            self.model = chunk.model
            if chunk.usage:
                self.usages.append(chunk.usage)
            for choice in chunk.choices:
                self.content += choice.delta.content or ""
                self.finish = choice.finish_reason or self.finish
                for part in choice.delta.tool_calls or []:
                    self._call(part)

    def _call(self, part):
        if part.index == len(self.calls):
            function = {"name": part.function.name, "arguments": ""}
            self.calls.append({"id": part.id, "type": part.type, "function": function})
        self.calls[part.index]["function"]["arguments"] += part.function.arguments


@pytest.mark.parametrize(
    "options, asked",
    [
        pytest.param({"stream_options": {"include_usage": True}}, True, id="usage asked for"),
        pytest.param({"stream_options": {"include_usage": False}}, False, id="usage refused"),
        pytest.param({}, False, id="usage not mentioned"),
    ],
)
def test_stream(setup, options, asked):
    b = setup(max_budget=1)
    raw = b.client.chat.completions.with_raw_response.create(**chat("house-name"))
    whole = raw.parse()
    b.book(raw.headers, whole.usage)
    got = Collected(b, {**chat("house-name"), **options})
    assert got.content == whole.choices[0].message.content
    assert (got.finish, got.model) == ("stop", "fake-renamed")
    assert got.usages == ([whole.usage] if asked else [])
    assert "x-penstock-response-cost" not in got.headers, "it is not known yet"
    b.book(got.headers, whole.usage)
    b.audit()


def test_long_stream(setup):
    b = setup(max_budget=1)
    got = Collected(b, {**chat("fake-out-3000"), "stream_options": {"include_usage": True}})
    assert len(got.content.split()) == 3000
    assert got.chunks == 3003  # role, deltas, finish, usage
    b.book(got.headers, got.usages[0])
    b.audit()


@pytest.mark.parametrize("name", ["tools", "unicode"])
def test_recorded_deltas_give_the_whole_answer(setup, name):
    b = setup()
    whole = openai.types.chat.ChatCompletion.model_validate(json.loads(played(f"{name}.json")))
    got = Collected(b, chat(f"played-{name}"))
    choice = whole.choices[0]
    assert got.content == (choice.message.content or "")
    assert got.calls == [call.model_dump() for call in choice.message.tool_calls or []]
    assert got.finish == choice.finish_reason
    assert got.usages == []
    b.book(got.headers, whole.usage)
    b.audit()


def test_stream_that_the_provider_breaks_off_is_an_error(setup):
    b = setup(max_budget=1)
    deltas = []
    with pytest.raises(openai.APIError) as caught:
        for chunk in b.client.chat.completions.create(**chat("fake-reset-mid-out-20"), stream=True):
            deltas += [choice.delta.content for choice in chunk.choices if choice.delta.content]
    assert caught.value.code == "upstream_error"
    assert len(deltas) == 10, "what came before is delivered"
    [row] = b.rows(1)
    assert (row["status"], row["completion_tokens"], row["estimated"]) == ("upstream_aborted", 10, True)
    assert nano(row) == price(row)


def check_left(b, deltas):
    [row] = b.rows(1)
    assert (row["status"], row["estimated"], nano(row)) == ("client_closed", True, price(row))
    assert deltas <= row["completion_tokens"] < 1000
    seen = fake_row(row["request_id"])
    assert not seen["complete"] and row["completion_tokens"] <= seen["sent_tokens"] < 1000


LONG = {**chat("fake-out-1000-pace-20ms"), "stream": True}


def test_client_that_closes_pays_for_what_it_got(setup):
    b = setup(max_budget=1)
    with b.client.chat.completions.create(**LONG) as stream:
        deltas = [chunk for chunk, _ in zip(stream, range(4))][1:]
    check_left(b, len(deltas))


def test_cancelled_task_pays_for_what_it_got(setup):
    b = setup(max_budget=1)
    deltas = []

    async def talk(enough):
        async with openai.AsyncOpenAI(api_key=b.key, base_url=BASE) as client:
            async for chunk in await client.chat.completions.create(**LONG):
                deltas.append(chunk)
                if len(deltas) == 4:
                    enough.set()

    async def leave():
        enough = asyncio.Event()
        task = asyncio.create_task(talk(enough))
        await enough.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    check_left(b, len(deltas) - 1)
