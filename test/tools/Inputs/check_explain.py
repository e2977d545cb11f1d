"""check_explain.py PAGE REPORT [TIMELINE]: what a page of --explain holds."""

import html.parser
import json
import re
import sys


class Page(html.parser.HTMLParser):
    """The elements of a page, and the texts of its scripts and its title."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.open = [], {}, []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open:
            place = self.elements[-1][1].get("id", self.open[-1])
            self.texts[place] = self.texts.get(place, "") + data


text = open(sys.argv[1], encoding="utf-8").read()
report = json.load(open(sys.argv[2], encoding="utf-8"))
page = Page(text)
data = json.loads(page.texts["data"])
print("title", data["title"])
assert page.texts["title"] == "Plan of " + data["title"]
print("command", data["command"])

tags = [tag for tag, _ in page.elements]
assert not {"img", "link", "iframe", "object", "embed", "base", "form", "i"} & set(tags), set(tags)
for tag, attributes in page.elements:
    assert not {"src", "href", "style", "onload", "onerror"} & attributes.keys(), (tag, attributes)
without = text.replace(page.texts["data"].replace("<", "\\u003c"), "")
assert not re.search(r"https?:|@import|url\((?!#)|fetch\(|XMLHttpRequest|import\(", without)
assert any("default-src 'none'" in attributes.get("content", "") for _, attributes in page.elements)
assert tags.count("script") == 2 and "<" not in re.search(r'id="data">(.*)</script>', text)[1]
print("loads nothing")
assert data["report"] == report
print("has the numbers of the report")
if "memory_limit" in report:
    print("limit", data["report"]["memory_limit"])

if len(sys.argv) > 3:
    events = json.load(open(sys.argv[3], encoding="utf-8"))["traceEvents"]
    # Of several roles the page shows one.
    of_role = {e["pid"] for e in events if e["name"] == "process_name" and
               ("role" not in data or e["args"]["name"].startswith(f"predicted {data['role']} on "))}
    assert len(of_role) == 1 and data.get("role") == report.get("predicted_role")
    launches = [e for e in events if e["ph"] == "X" and e["tid"] > 0 and e["pid"] in of_role]
    bars = data["bars"]
    assert sum(bar[7] for bar in bars) == len(launches)
    assert sum(bar[8] for bar in bars) == sum(e["args"]["bytes"] for e in launches)
    for bar in bars:
        assert bar[3] >= 0 and all(0 <= bar[i] < len(data["names"]) for i in (0, 4, 5, 6))
    if len(bars) == len(launches):
        for bar, launch in zip(bars, launches):
            assert (data["names"][bar[0]], bar[1] + 1) == (launch["name"], launch["tid"])
            assert abs(bar[2] / 1e3 - launch["ts"]) < 0.002 and abs(bar[3] / 1e3 - launch["dur"]) < 0.002
    print("has the launches of the timeline,", "each alone" if len(bars) == len(launches) else "neighbours together")
for one, other in data["edges"]:
    assert data["bars"][one][1] != data["bars"][other][1]
assert abs(data["step"] / 1e6 - report["predicted_step_ms"]) < 1e-5
exposed = sum(to - begin for begin, to in data["exposed"]) / 1e6
assert abs(exposed - report["predicted_exposed_ms"]) < 1e-3 * report["predicted_exposed_ms"] + 1e-6 * len(data["exposed"])
print("exposed time adds up")
assert max(sum(point[1:]) for point in data["curve"]) == report["predicted_alive_bytes"]
if data["lives_left_out"] == 0:
    for time, *kinds in data["curve"]:
        alive = [data["buffers"][b] for b, begin, to in data["lives"] if begin <= time < to]
        for kind in range(len(kinds) - 1):
            # Two times of a point may be equal in nanoseconds only.
            listed = sum(buffer[3] for buffer in alive if buffer[2] == kind)
            assert listed == kinds[kind] or sum(point[0] == time for point in data["curve"]) > 1, (time, kind)
print("memory is that of the prediction")
print(f"storages: {len(data['storages'])}, of {len(data['storages'][0]['members'])} members")
assert len(text) < 4e6
print(f"svg: 2 charts, {tags.count('figure')} pictures")
if data["lives_left_out"] > 0:
    assert len(data["lives"]) == 20000 and len(data["curve"]) < 4000
    print(f"below 4 MB; {data['lives_left_out']} lives are left out, the curve has parts of the time")
