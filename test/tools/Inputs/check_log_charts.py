"""check_log_charts.py SVG HTML: the charts of fsdpc-log.test."""

import json
import re
import sys
import xml.etree.ElementTree as xml

SPACE = "{http://www.w3.org/2000/svg}"
svg, html = (open(path, encoding="utf-8").read() for path in sys.argv[1:])
root = xml.fromstring(svg)
lines = [path for path in root.iter(SPACE + "path") if path.get("class") == "line"]
# Both logs have a loss, one of them has a norm: its values in steps 1, 3 and 4, of which the last two are joined.
assert len(lines) == 3, len(lines)
assert [len(re.findall("[ML]", path.get("d"))) for path in lines] == [2, 2, 3], [path.get("d") for path in lines]
norm = re.findall(r"([ML])([\d.]+) ([\d.]+)", lines[2].get("d"))
assert [move for move, _, _ in norm] == ["M", "M", "L"], norm
# On a logarithmic axis 1.5, 0.5 and 0.25 lie as their logarithms do.
y = [float(place) for _, _, place in norm]
assert abs((y[1] - y[0]) / (y[2] - y[1]) - 1.0986 / 0.6931) < 0.01, y
x = [float(place) for _, place, _ in norm]
assert abs((x[1] - x[0]) / (x[2] - x[1]) - 2) < 0.01, x
marks = [path for path in root.iter(SPACE + "path") if path.get("class") == "mark"]
assert [mark.find(SPACE + "title").text for mark in marks] == 2 * [
    "restart 1 after step 2, on fsdp=2: rank 1: was killed by signal 9 (Killed)", "rollback 1 from step 4 to step 3: got loss inf"]
texts = [text.text for text in root.iter(SPACE + "text")]
assert {"a.jsonl (2 restarts or rollbacks)", "b.jsonl", "loss (logarithmic)", "grad_norm (logarithmic)", "step"} <= set(texts), texts

for text in (svg, html):
    addresses = set(re.findall(r"https?://[^'\"\s]*", text))
    assert addresses == {"http://www.w3.org/2000/svg"}, addresses
    assert not re.search(r"<(link|img|iframe)\b|\bsrc\s*=|@import|url\(", text), "it loads something"
data = json.loads(re.search(r"<script type='application/json' id='data'>(.*?)</script>", html).group(1))
assert data["names"] == ["a.jsonl", "b.jsonl"] and data["x"] == "tokens", data
points = data["panels"][0]["runs"]
assert points[0] == [] and [point[1:] for point in points[1]] == [[1000000, 3], [2000000, 4]], points
assert points[1][0][0] < points[1][1][0], points
