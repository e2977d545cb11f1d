// point-at-chart.js PAGE X PANEL: what the page shows when the pointer is at X (0 left, 1 right) of the axes of panel number PANEL.

const page = require('fs').readFileSync(process.argv[2], 'utf8');
const text = page.match(/id='data'>([\s\S]*?)<\/script>/)[1], script = page.match(/<script>([\s\S]*?)<\/script>/)[1];
const data = JSON.parse(text);

function element() {
  return {
    style: {}, children: [], handlers: {}, shown: '', append(child) { this.children.push(child); },
    set textContent(words) { this.shown = words; this.children = []; }, get textContent() { return this.shown; },
    addEventListener(name, handler) { this.handlers[name] = handler; },
    getBoundingClientRect() { return {left: 40, top: 30, width: 960}; }};
}
const elements = {data: element(), chart: element(), cross: element(), values: element()};
elements.data.textContent = text;
globalThis.document = {getElementById: name => elements[name], createElement: element};
(0, eval)(script);
const panel = data.panels[process.argv[4]];
elements.chart.handlers.mousemove({clientX: 40 + data.left + process.argv[3] * data.plot_width, clientY: 30 + panel.top + 5});
if (elements.values.style.display !== 'block' || elements.cross.style.display !== 'block')
  console.log('nothing is shown');
else
  console.log([elements.values.shown, ...elements.values.children.map(row => row.style.color + ' ' + row.shown)].join('\n'));
elements.chart.handlers.mouseleave();
if (elements.values.style.display !== 'none')
  throw 'it stays';
