"""check_event_file.py EVENTS LOG [FIELD]: reads an event file of TensorBoard, by the public descriptions of its formats alone, and compares it with a log.

Records: tensorflow.org/tutorials/load_data/tfrecord. Messages: event.proto and summary.proto of TensorFlow, in the wire format of protocol buffers.
"""

import json
import math
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(content):
    while content:
        (size,), (check,) = struct.unpack_from("<Q", content), struct.unpack_from("<I", content, 8)
        assert check == masked(content[:8])
        data = content[12:12 + size]
        assert struct.unpack_from("<I", content, 12 + size)[0] == masked(data)
        yield data
        content = content[16 + size:]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def message(data):
    """(number, value) of each field."""
    at, fields = 0, []
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif key & 7 == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            assert key & 7 == 2, key
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        fields.append((key >> 3, value))
    return fields


first, *events = [dict(message(data)) for data in records(open(sys.argv[1], "rb").read())]
assert first[3] == b"brain.Event:2", first
wanted = sys.argv[3:]
steps = []
for line in open(sys.argv[2], encoding="utf-8"):
    try:
        entry = json.loads(line)
    except ValueError:
        continue
    if isinstance(entry, dict) and "step" in entry:
        steps.append(entry)
assert len(steps) == len(events), f"{len(events)} events of {len(steps)} steps"
for step, event in zip(steps, events):
    assert event[2] == step["step"] and event[1] > 1e9, event
    got = {}
    for number, value in message(event[5]):
        assert number == 1
        fields = dict(message(value))
        got[fields[1].decode()] = fields[2]
    names = [name for name in step if name != "step" and (not wanted or name in wanted)]
    assert list(got) == names, (list(got), names)
    for name in names:
        expected = math.nan if step[name] is None else struct.unpack("f", struct.pack("f", step[name]))[0]
        assert got[name] == expected or (math.isnan(got[name]) and math.isnan(expected)), (name, got[name], expected)
