"""Small tokenizers of the shapes that models have, and their ids, by `tokenizers`: see README.md.

usage: make_tokenizers.py [--vocabulary N] [--folder FOLDER]

The file of each shape is as that of the model it is named after, but for its vocabulary, which is trained here on the documents of
this repository and on the texts below.
"""

import argparse
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LLAMA_3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN_2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SCRIPTS = [
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "いろはにほへと ちりぬるを 我が世誰ぞ 常ならむ。",
    "天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。",
    "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.",
    "नहि कल्याणकृत्कश्चिद्दुर्गतिं तात गच्छति ॥",
    "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ إِذ بَزَغَت",
    "Zażółć gęślą jaźń. Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Naïve façade, Ærøskøbing, Größe, İstanbul ıslak.",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇫🇷🇯🇵 ☃️ 1️⃣ 😀😃",
]
# What a reader may get wrong: each is encoded by every tokenizer.
CASES = [
    "",
    " ",
    "Hello, world!",
    "It's we'LL they'Ve I'm he'd can'T 'S ’s 'ſ 'K",
    "e\u0301 \u00e9 a\u0323\u0307 a\u0307\u0323 \u1e9b\u0323 \u212b \uac00 \u1100\u1161 \u0344 \ufb01 x\u0300\u0301\u0302\u0303\u0304",
    "0 12 345 6789 1234567 ٣٤٥ ½ Ⅷ ² 一二三",
    "a\tb\r\nc\r\r\n\n  d   \n\n   e\u00a0f\u3000g\u2028h\u0085i\u200bj\u180ek   ",
    "\n\n\nx\n \n\t\n y ",
    "def f(x):\n    if x:\n\t\treturn {'a': [1, 2, 3]}  # ok\n        pass\n",
    "nul\0bell\a\x1b[31mdelete\x7f\ufeffmark\ufffd\uffff",
    "<|endoftext|> a<|endoftext|>b <|endoftext|>\n<|endoftext|><|endoftext|>",
    "<s> a</s>b <s>\n</s><s></s> <unk> <0x41> <0x0A>",
    "<|begin_of_text|>x<|end_of_text|> <|im_start|>user\nhi<|im_end|>\n<think>\nwell</think> <think >",
    "▁a ▁▁b c▁ _ \u2581",
    "words kwords words, words-end wordswords xwordsx é" + "words",
    " [left]  a  [left] b[right]  c\u3000[right]\n[both]  [both] d",
    "caf\u00e9 CAF\u00c9 stra\u00dfe \u01c5 \u0345 \u0130 " + "\u0440\u0443\u0441\u0441\u043a\u0438\u0439",
    "\U00020000\U0001f600\U000e0041\U0010ffff\ue000",
    "a" * 300,
    "=" * 33 + " " * 40 + "-" * 21 + "\n" * 9 + "ab" * 50,
    *SCRIPTS,
]
# Bytes that are no characters, as files may have them; the ids are those of the text that Python decodes with errors="replace".
INVALID = [b"a\xffb", b"\xc3", b"\xe2\x82", b"\xe2\x82 x", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf0\x9f\x98", b"\xf5\x80\x80\x80", b"\xf4\x90\x80\x80",
           b"\xf0\x80\x80\x80x", b"\x80\x80", b"ok \xe4\xbd\xa0 \xe4\xbd"]


def corpus():
    for path in sorted((ROOT / "docs").glob("*.md"))[:6]:
        yield from path.read_text().splitlines(keepends=True)
    for _ in range(4):
        yield from SCRIPTS
        yield from CASES


def trained(tokenizer, size, **options):
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, **options)
    tokenizer.train_from_iterator(corpus(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def special(text, **options):
    return AddedToken(text, normalized=options.pop("normalized", False), special=True, **options)


def byte_level(size, normalizer, pre, first=(), **options):
    """A tokenizer of byte-level BPE with the special tokens `first` at the beginning of its vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre
    vocabulary, merges = trained(tokenizer, size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=list(first))
    result = Tokenizer(models.BPE(vocabulary, merges, **options))
    if normalizer:
        result.normalizer = normalizer
    result.pre_tokenizer, result.decoder = pre, decoders.ByteLevel()
    return result


def gpt2(size):
    tokenizer = byte_level(size, None, pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens([special("<|endoftext|>", normalized=True)])
    return tokenizer


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def llama3(size):
    tokenizer = byte_level(size, None, split(LLAMA_3), ignore_merges=True)
    tokenizer.add_special_tokens([special(text) for text in ("<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|eot_id|>")])
    begin = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                                      special_tokens=[("<|begin_of_text|>", begin)])])
    return tokenizer


def qwen2(size):
    tokenizer = byte_level(size, normalizers.NFC(), split(QWEN_2))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens([special(text) for text in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ("<think>", "</think>")])
    # No model's: what the entries of added tokens can say.
    tokenizer.add_tokens([AddedToken("words", single_word=True, normalized=False), AddedToken("[left]", lstrip=True, normalized=False),
                          AddedToken("[right]", rstrip=True, normalized=False), AddedToken("[both]", lstrip=True, rstrip=True, normalized=False),
                          AddedToken("café", normalized=True), AddedToken("    ", normalized=False), AddedToken("        ", normalized=True)])
    return tokenizer


def with_bytes(size, first):
    """Vocabulary and merges as sentencepiece's, which the files of llama-2 were converted from: `first`, bytes, pieces."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    _, merges = trained(tokenizer, size)
    mark = "▁"
    merges = [(mark, mark), (mark * 2, mark * 2), (mark * 4, mark * 4), *merges]
    characters = sorted({character for pair in merges for piece in pair for character in piece})
    pieces = dict.fromkeys([*first, *BYTES, *("".join(pair) for pair in merges), *characters])
    return {piece: number for number, piece in enumerate(pieces)}, merges


def sentencepiece(size):
    first = ("<unk>", "<s>", "</s>")
    vocabulary, merges = with_bytes(size, first)
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.add_special_tokens([special(text) for text in first])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer


def llama2(size):
    tokenizer = sentencepiece(size)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return tokenizer


def mistral(size):
    tokenizer = sentencepiece(size)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return tokenizer


SHAPES = {"gpt2": gpt2, "llama3": llama3, "qwen2": qwen2, "llama2": llama2, "mistral": mistral}
PAIRS = ("llama3", "mistral")  # merges as ["a", "b"]; the others as "a b"


def file_of(name, tokenizer):
    content = json.loads(tokenizer.to_str())
    if name not in PAIRS:
        content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocabulary", type=int, default=560)
    parser.add_argument("--folder", type=pathlib.Path, default=HERE / "tokenizers")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    texts = [text.encode() for text in CASES] + INVALID
    cases = [{"input": text} for text in CASES] + [{"bytes": list(text)} for text in INVALID]
    for name, make in SHAPES.items():
        path = options.folder / f"{name}.json"
        path.write_text(file_of(name, make(options.vocabulary)))
        tokenizer = Tokenizer.from_file(str(path))
        for case, text in zip(cases, texts):
            text = text.decode(errors="replace")
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            whole = tokenizer.encode(text).ids
            assert whole[len(whole) - len(ids):] == ids, (name, text)
            case[name] = {"ids": ids, "special": whole[:len(whole) - len(ids)],
                          "text": tokenizer.decode(ids, skip_special_tokens=False), "plain": tokenizer.decode(ids)}
            # Most are the text itself.
            for key in ("text", "plain"):
                if case[name][key] == text:
                    del case[name][key]
            if not case[name]["special"]:
                del case[name]["special"]
        print(f"{name}: {tokenizer.get_vocab_size()} tokens, {path.stat().st_size} bytes")
    lines = ",\n".join(json.dumps(case, ensure_ascii=True, separators=(",", ":")) for case in cases)
    (options.folder / "cases.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
