#include "tools/fsdpc-log/ChartPage.h"

#include "base/Error.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace fsdpc_log {

namespace {

constexpr const char *kStyle = R"(
body { font-family: sans-serif; margin: 16px; background: #fff; color: #222 }
#chart { position: relative; width: max-content }
#cross { position: absolute; width: 1px; background: #999; display: none; pointer-events: none }
#values { position: absolute; display: none; pointer-events: none; background: #fffffff0; padding: 6px 8px;
  border: 1px solid #bbb; border-radius: 4px; font-size: 12px; white-space: pre }
)";

constexpr const char *kScript = R"(
const data = JSON.parse(document.getElementById('data').textContent);
const chart = document.getElementById('chart'), cross = document.getElementById('cross'), values = document.getElementById('values');
function nearest(points, x) {
  let low = 0, high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    points[middle][0] < x ? low = middle + 1 : high = middle;
  }
  return low > 0 && (low == points.length || x - points[low - 1][0] < points[low][0] - x) ? low - 1 : low;
}
chart.addEventListener('mousemove', event => {
  const box = chart.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  const panel = data.panels.find(one => y >= one.top && y <= one.top + data.panel_height);
  const isInside = panel && x >= data.left && x <= data.left + data.plot_width;
  cross.style.display = values.style.display = isInside ? 'block' : 'none';
  if (!isInside)
    return;
  cross.style.left = x + 'px';
  cross.style.top = panel.top + 'px';
  cross.style.height = data.panel_height + 'px';
  values.textContent = panel.field;
  panel.runs.forEach((points, run) => {
    if (!points.length)
      return;
    const point = points[nearest(points, x)], row = document.createElement('div');
    row.style.color = data.colors[run];
    row.textContent = data.names[run] + '  ' + data.x + ' ' + point[1] + ': ' + (point[2] === null ? 'not finite' : point[2]);
    values.append(row);
  });
  const isRight = x > box.width / 2;
  values.style.left = isRight ? 'auto' : x + 12 + 'px';
  values.style.right = isRight ? box.width - x + 12 + 'px' : 'auto';
  values.style.top = y + 12 + 'px';
});
chart.addEventListener('mouseleave', () => cross.style.display = values.style.display = 'none');
)";

} // namespace

std::string chartPage(const Chart &chart) {
  nlohmann::ordered_json data;
  data["left"] = Chart::kLeft;
  data["plot_width"] = Chart::kPlot;
  data["panel_height"] = Chart::kPanel;
  data["x"] = chart.x().field;
  for (std::size_t run = 0; run < chart.runs().size(); ++run) {
    data["names"].push_back(chart.runs()[run].name);
    data["colors"].push_back(Chart::colorOf(run));
  }
  for (std::size_t i = 0; i < chart.panels().size(); ++i) {
    nlohmann::ordered_json panel{{"field", chart.panels()[i].y.field},
                                 {"top", chart.panels()[i].top}};
    for (const RunCurves &run : chart.runs()) {
      nlohmann::ordered_json points = nlohmann::ordered_json::array();
      for (const Point &point : run.ofField[i]) // a value that is not finite is null in JSON
        points.push_back({std::round(chart.pixelX(point.x) * 10) / 10, point.x, point.y});
      panel["runs"].push_back(std::move(points));
    }
    data["panels"].push_back(std::move(panel));
  }
  std::string json = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  // Within a script of HTML.
  for (std::size_t at = 0; (at = json.find('<', at)) != json.npos;)
    json.replace(at, 1, "\\u003c");
  return std::string("<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n<title>") +
         "training logs</title>\n<style>" + kStyle +
         "</style>\n</head>\n<body>\n<div id='chart'>\n" + chart.svg(/*isFile=*/false) +
         "<div id='cross'></div><div id='values'></div>\n</div>\n"
         "<script type='application/json' id='data'>" +
         json + "</script>\n<script>" + kScript + "</script>\n</body>\n</html>\n";
}

} // namespace fsdpc_log
