"""check_token_files.py PARTS WHOLE N: the files PARTS_SPLIT_*.bin have N tokens each but the last, together those of WHOLE_SPLIT_000000.bin."""

import pathlib
import struct
import sys


def read(path):
    content = path.read_bytes()
    magic, version, count, *rest = struct.unpack("<256i", content[:1024])
    assert (magic, version, set(rest)) == (20240520, 1, {0}), path
    assert len(content) == 1024 + 2 * count, path
    return list(struct.unpack(f"<{count}H", content[1024:]))


parts, whole, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
for split in ("train", "val"):
    files = [read(path) for path in sorted(pathlib.Path().glob(f"{parts}_{split}_*.bin"))]
    assert len(files) > 2, split
    assert all(len(tokens) == size for tokens in files[:-1]) and 0 < len(files[-1]) <= size, split
    joined = [token for tokens in files for token in tokens]
    assert joined == read(pathlib.Path(f"{whole}_{split}_000000.bin")), split
    assert joined[-1] == 560, "the last document has its end"
