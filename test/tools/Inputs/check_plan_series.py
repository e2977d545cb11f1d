"""check_plan_series.py FILE...: the JSON of `plan --scaling` and `--batch-sweep` tells what its commands report, and pictures show it.

Efficiencies are computed again from the rows. A picture FILE.svg is of FILE.json.
"""

import json
import pathlib
import shlex
import subprocess
import sys
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def report(command):
    """What the compiler reports on the command of a row."""
    words = shlex.split(command)
    words = words[:words.index("--report")]
    subprocess.run([*words, "--report=row.json"], check=True, stdout=subprocess.DEVNULL)
    return json.loads(pathlib.Path("row.json").read_text(encoding="utf-8"))


def rate(row):
    return row["predicted_samples_per_s"] / row["devices"]


def check_data(name):
    found = json.loads(pathlib.Path(name).read_text(encoding="utf-8"))
    exact = 0
    for key in ("strong_scaling", "weak_scaling", "batch_sweep"):
        rows = [row for row in found.get(key, []) if "command" in row]
        assert all("reason" in row for row in found.get(key, []) if row not in rows)
        for row in rows:
            told = report(row["command"])
            assert f"--batch={row['batch']} " in row["command"], row
            for field in ("arena", "predicted_step_ms", "predicted_exposed_ms", "predicted_mfu", "predicted_samples_per_s"):
                assert told[field] == row[field], (field, told[field], row)
            assert row["arena"] <= found["memory_limit"]
            expected = told["predicted_efficiency"] if key == "batch_sweep" else rate(row) / rate(rows[0])
            assert abs(row["efficiency"] - expected) < 1e-9, (row, expected)
            exact += 1
        if key == "strong_scaling":
            assert len({row["batch"] for row in rows}) <= 1
        if key == "weak_scaling":
            assert len({row["batch"] / row["devices"] for row in rows}) <= 1
    print(f"{name}: {exact} rows are exact")


def check_picture(name):
    found = json.loads(pathlib.Path(name).with_suffix(".json").read_text(encoding="utf-8"))
    root = xml.etree.ElementTree.parse(name).getroot()
    assert root.tag == SVG + "svg"
    assert {element.tag for element in root.iter()} <= {SVG + tag for tag in ("svg", "rect", "g", "text", "path", "circle")}
    charts = root.findall(SVG + "g")
    series = [rows for rows in found.values() if isinstance(rows, list)]
    circles = len([row for row in series[0] if "command" in row]) + 1  # those of the first line, and one beside its name
    for chart in charts:
        assert len(chart.findall(SVG + "circle")) == circles, name
        words = [text.text for text in chart.findall(SVG + "text")]
        assert any(word in ("samples/s", "%", "% of a step", "GiB") for word in words), words
    print(f"{name}: {len(charts)} charts")


for file in sys.argv[1:]:
    (check_picture if file.endswith(".svg") else check_data)(file)
