"""make_texts.py: writes the inputs of tokenize.test to the current folder."""

import json
import pathlib

pathlib.Path("a.txt").write_text("Hello, world\n")
pathlib.Path("docs.jsonl").write_text(
    '{"id": 1, "text": "first line\\nsecond", "meta": {"text": "not this", "a": [1, [2, {}]]}}\n'
    '   \n'
    '{"text": "Gr\\u00f6\\u00dfe \\ud83d\\ude00 \\"quoted\\""}\r\n'
    '{"text": ""}\n'
    '{"text": "!", "text": "?"}\n'
    '{"text": "last without an end of line"}')
with open("many.jsonl", "w") as many:
    for i in range(200):
        many.write(json.dumps({"text": f"document {i} " + "of several words " * (i % 7)}) + "\n")
pathlib.Path("bytes.txt").write_bytes(b"ok \xe2\x82.\n")
pathlib.Path("bytes.jsonl").write_bytes(b'{"text":"a"}\n{"text":"b\xff"}\n')
pathlib.Path("half.jsonl").write_text('{"text": "x\\ud83dy\\ud83d\\ude00\\udc00\\\\ud800z"}\n')
pathlib.Path("broken.jsonl").write_text('{"text": "fine"}\n{"text": "broken\n')
pathlib.Path("list.jsonl").write_text('"text"\n')
# A vocabulary that needs 32 bits, of bytes; and a text of its last token.
bytes_of = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
characters = [chr(byte) for byte in bytes_of] + [chr(0x100 + i) for i in range(256 - len(bytes_of))]
vocabulary = {character: i for i, character in enumerate(characters)}
vocabulary["zz"] = 66000
large = {"model": {"type": "BPE", "vocab": vocabulary, "merges": ["z z"]},
         "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"}}
pathlib.Path("large.json").write_text(json.dumps(large))
large["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "(a+)+[bc]"}, "behavior": "Isolated"}, large["pre_tokenizer"]]}
pathlib.Path("slow.json").write_text(json.dumps(large))
pathlib.Path("slow.txt").write_text("a" * 40 + "d")
pathlib.Path("stories.txt").write_text("one<|endoftext|>\ntwo<|endoftext|>\n")
pathlib.Path("w.txt").write_text("zz")
