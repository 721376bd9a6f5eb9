/**
 * Writes mcp_notebook.pot: all texts of the side panel that are translated, for translators.
 *
 * A text that would not be translated ends the build: JSX text, or an argument that is no literal.
 */
const fs = require('fs');
const path = require('path');
const ts = require('typescript');

const SOURCES = ['src', '../panel'].map(folder => path.join(__dirname, folder));
const CATALOGUE = path.join(__dirname, 'mcp_notebook.pot');
/** The methods of JupyterLab's TranslationBundle, with the number of texts that they take. */
const METHODS = { __: 1, _n: 2 };
const HEAD = `# The texts of mcp-notebook's side panel; written by labextension/messages.js.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"
`;

const places = new Map();
const flaws = [];
const files = SOURCES.flatMap(folder =>
  fs.readdirSync(folder, { recursive: true }).map(file => ({ folder, file }))
).sort((a, b) => (a.file < b.file ? -1 : 1));
for (const { folder, file } of files) {
  if (/\.tsx?$/.test(file)) {
    const text = fs.readFileSync(path.join(folder, file), 'utf8');
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
    visit(source, file);
  }
}
if (flaws.length) {
  console.error(flaws.join('\n'));
  process.exit(1);
}
fs.writeFileSync(CATALOGUE, HEAD + [...places].sort(compare).map(format).join(''));

function visit(node, file) {
  if (ts.isJsxText(node) && /\p{L}/u.test(node.text)) {
    flaws.push(`${file}: not translated: ${node.text.trim()}`);
  }
  if (
    ts.isCallExpression(node) &&
    ts.isPropertyAccessExpression(node.expression) &&
    Object.hasOwn(METHODS, node.expression.name.text)
  ) {
    const texts = node.arguments.slice(0, METHODS[node.expression.name.text]);
    if (texts.every(ts.isStringLiteral)) {
      const key = JSON.stringify(texts.map(text => text.text));
      places.set(key, (places.get(key) ?? new Set()).add(file));
    } else {
      flaws.push(`${file}: not a literal: ${node.getText()}`);
    }
  }
  ts.forEachChild(node, child => visit(child, file));
}

function compare([a], [b]) {
  return a < b ? -1 : 1;
}

function format([key, files]) {
  const [text, plural] = JSON.parse(key).map(part => JSON.stringify(part));
  const lines = [`#: ${[...files].join(' ')}`, `msgid ${text}`];
  lines.push(...(plural ? [`msgid_plural ${plural}`, 'msgstr[0] ""', 'msgstr[1] ""'] : ['msgstr ""']));
  return `\n${lines.join('\n')}\n`;
}
