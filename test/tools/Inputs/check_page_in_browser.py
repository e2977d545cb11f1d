"""check_page_in_browser.py PAGE REPORT [TEXT...]: loads a page of --explain in chromium and checks what it draws.

A TEXT is shown somewhere on the page.
"""

import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# The actions of a user: points at the middle of a launch that has waits, and drags over a part of
# the chart.
POINT = """
const data = JSON.parse(document.getElementById("data").textContent);
const chart = document.getElementById("timeline"), before = document.getElementById("cursor-title").textContent;
const waiting = new Set(data.edges.flat());
const bar = [...chart.querySelectorAll("rect[data-bar]")].find(one => waiting.has(Number(one.dataset.bar)));
const box = bar.getBoundingClientRect();
const send = (target, kind, x) => target.dispatchEvent(new PointerEvent(kind,
    {bubbles: true, clientX: x, clientY: box.top + box.height / 2}));
send(bar, "pointermove", box.left + box.width / 2);
const result = {
  marked: chart.querySelectorAll("rect.marked").length, arrows: chart.querySelectorAll(".arrow.marked").length,
  name: document.getElementById("launch").textContent, bar: data.names[data.bars[bar.dataset.bar][0]],
  moved: before !== document.getElementById("cursor-title").textContent};
const ticks = () => [...chart.querySelectorAll("text")].map(text => text.textContent).join();
const whole = ticks(), area = chart.getBoundingClientRect();
send(chart, "pointerdown", area.left + area.width * 0.4);
send(chart, "pointermove", area.left + area.width * 0.5);
send(chart, "pointerup", area.left + area.width * 0.5);
result.closer = ticks() !== whole && !ticks().includes(",0 ms");
document.querySelector("button").click();
result.back = ticks() === whole;
document.documentElement.dataset.result = JSON.stringify(result);
"""


def load(text):
    """The page once its script has run, as markup, and what it said on the console."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "page.html")
        file.write_text(text, encoding="utf-8")
        done = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
             f"--user-data-dir={folder}/profile", "--window-size=1200,2000", "--virtual-time-budget=10000", "--dump-dom",
             file.as_uri()],
            capture_output=True, text=True, timeout=300, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def section(dom, name, tag):
    """What is inside the element with that id."""
    return re.search(rf'<{tag}[^>]* id="{name}".*?</{tag}>|<{tag} id="{name}".*?</{tag}>', dom, re.S)[0]


page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
report = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
dom, said = load(page)
assert not said, said
assert 'data-ready="1"' in dom
print("no error")
shown = html.unescape(re.sub(r"<[^>]*>", "\n", re.sub(r"<script.*?</script>", "", dom, flags=re.S)))

timeline = section(dom, "timeline", "svg")
bars = {int(number) for number in re.findall(r'data-bar="(\d+)"', timeline)}
streams = {data["bars"][bar][1] for bar in bars}
assert streams == {bar[1] for bar in data["bars"]} and len(bars) > len(streams)
print(f"every launch or its neighbour is drawn, on {len(streams)} streams")
memory = section(dom, "memory", "svg")
kinds = {data["kinds"][i - 1] for point in data["curve"] for i in range(1, len(point)) if point[i] > 0}
assert set(re.findall(r'data-kind="(\w+)"', memory)) == kinds and "NaN" not in memory + timeline
print("every category of memory is drawn")
calls = report["predicted_collectives"]
groups = [(call["kind"], call["axes"]) for call in calls]
several = {str(group) for group in groups if groups.count(group) > 1}
if calls:
    assert section(dom, "collectives", "table").count("<tr") == 1 + len(calls) + len(several)
else:
    assert re.search(r"<h2>Collectives of a step</h2><p>none</p>", dom)
assert section(dom, "streams", "table").count("<tr") == 1 + len(report["predicted_streams"])
print("every collective and every stream has a row")


def digits(value):
    """Four digits, as the page has them."""
    return f"{value:,.0f}" if value >= 1000 else f"{float(f'{value:.4g}'):.10g}"


tiles = re.search(r'<div id="tiles">(.*?)<p', dom, re.S)[1]
rate = report.get("predicted_tokens_per_s", report.get("predicted_samples_per_s"))
for number in (digits(report["predicted_step_ms"]) + " ms", digits(rate), f"{100 * report['predicted_mfu']:.1f} %",
               digits(report["predicted_exposed_ms"]) + " ms", f"{100 * report['predicted_efficiency']:.1f} %"):
    assert f"<b>{number}</b>" in tiles, (number, tiles)
peak = section(dom, "peak-kinds", "table")
for kind in data["kinds"]:
    size = report["peak_" + kind]
    assert size == 0 or f">{size:,}<" in peak, (kind, size)
assert f">{report['lower_bound']:,}<" in peak
for call in calls:
    assert f"{call['bytes']:,}" in section(dom, "collectives", "table")
assert data["command"] in shown
print("the numbers are those of the report")
if "chosen" in report:
    assert report["chosen"] in shown
    print("the choice is shown")
for text in sys.argv[3:]:
    assert text in shown, text
    print("shows", text)
assert "<img" not in dom and "<i>" not in dom

dom, said = load(page.replace("</body>", f"<script>{{{POINT}}}</script></body>"))
assert not said, said
result = json.loads(html.unescape(re.search(r'data-result="([^"]*)"', dom)[1]))
assert result["marked"] == 1 and result["arrows"] > 0 and result["moved"] and result["bar"] in result["name"], result
print("the pointer marks a launch with its waits, and shows what is alive")
assert result["closer"] and result["back"], result
print("dragging looks closer")
assert load(page.replace("drawers.push(", "drawers.shove("))[1]
print("a fault of the script is noticed")
