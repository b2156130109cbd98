"""Counts files with Python's tiktoken and times itself: see child.go for the protocol.

tiktoken downloads its vocabulary when it is first used. Here it comes from the file that
the one argument names; pattern and special tokens are the package's own.
"""

import base64
import sys
import time

import tiktoken
import tiktoken_ext.openai_public as public


def ranks(*_args, **_options):
    with open(sys.argv[1], "rb") as file:
        return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in file if line.strip())}


def main():
    public.load_tiktoken_bpe = ranks
    encoding = tiktoken.Encoding(**public.o200k_base())
    encoding.encode_ordinary("warm")
    texts = {}
    print("ready", flush=True)
    for line in sys.stdin:
        files = line.rstrip("\n").split("\t")
        for file in files:
            if file not in texts:
                with open(file, encoding="utf-8", newline="") as source:
                    texts[file] = source.read()
        answers = []
        for file in files:
            text = texts[file]
            start = time.perf_counter_ns()
            tokens = len(encoding.encode_ordinary(text))
            answers.append(f"{tokens}:{time.perf_counter_ns() - start}")
        print("\t".join(answers), flush=True)


main()
