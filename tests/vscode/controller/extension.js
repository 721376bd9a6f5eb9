/**
 * What the tests need of VS Code: kernels, in place of Microsoft's extension, and a client.
 *
 * The controller runs cells by `helper.py`, one for each notebook. The commands write what VS Code's
 * own client of MCP lists and gets into a file of the notebooks' folder. The agent is Copilot's, with a
 * model of ours, which needs neither a network nor an account.
 *
 * It starts with the window. With `onNotebook:jupyter-notebook` among its activation events, VS Code may
 * say "Detecting Kernels" for ever: it looks whether the event is done one frame after the last
 * extension has started, and the event may be done a little later (`NotebookKernelDetection`).
 */
const { spawn } = require('child_process');
const fs = require('fs');
const path = require('path');
const readline = require('readline');
const vscode = require('vscode');

/** Stands in for a model: calls the tool `rain` once, and says what came of it. */
const model = {
  provideLanguageModelChatInformation: () => [
    {
      id: 'stand-in',
      name: 'Stand-in',
      family: 'stand-in',
      version: '1',
      maxInputTokens: 100_000,
      maxOutputTokens: 10_000,
      capabilities: { toolCalling: true }
    }
  ],
  provideLanguageModelChatResponse: async (_, messages, { tools = [] }, progress) => {
    const results = messages.at(-1).content.filter(part => part instanceof vscode.LanguageModelToolResultPart);
    const rain = tools.find(tool => tool.name.endsWith('_rain'));
    if (rain && !results.length) {
      progress.report(new vscode.LanguageModelToolCallPart('1', rain.name, { day: 3 }));
    } else {
      const said = results.flatMap(({ content }) => content.map(part => part.value)).join();
      progress.report(new vscode.LanguageModelTextPart(`The tool says: ${said}`));
    }
  },
  provideTokenCount: async () => 1
};

/** Start Copilot's extension, which VS Code has and which is off for those who have no account. */
async function startAgent() {
  const find = () => vscode.extensions.getExtension('GitHub.copilot-chat');
  const isThere = new Promise(resolve => vscode.extensions.onDidChange(() => find() && resolve()));
  await vscode.commands.executeCommand('workbench.extensions.action.enableAll');
  await (find() ?? isThere);
  await find().activate();
}

exports.activate = context => {
  const controller = vscode.notebooks.createNotebookController('tests', 'jupyter-notebook', 'Test kernel');
  const helpers = new Map();
  let last = 0;
  controller.supportedLanguages = ['python'];
  controller.executeHandler = async (cells, notebook) => {
    for (const cell of cells) {
      await run(cell, find(notebook));
    }
  };
  controller.interruptHandler = notebook => void find(notebook).process.kill('SIGINT');

  function find({ uri: { fsPath: file } }) {
    if (!helpers.has(file)) {
      const script = path.join(__dirname, 'helper.py');
      const process_ = spawn(process.env.TESTS_PYTHON, [script, file], { cwd: path.dirname(file) });
      const waiting = new Map();
      readline.createInterface({ input: process_.stdout }).on('line', line => {
        const message = JSON.parse(line);
        waiting.get(message.id)?.(message);
      });
      process_.on('exit', () => helpers.delete(file));
      helpers.set(file, { process: process_, waiting });
    }
    return helpers.get(file);
  }

  async function run(cell, helper) {
    const execution = controller.createNotebookCellExecution(cell);
    const id = (execution.executionOrder = ++last);
    execution.start(Date.now());
    await execution.clearOutput();
    await new Promise(resolve => {
      helper.waiting.set(id, async message => {
        if (message.ended !== undefined) {
          execution.end(message.ended, Date.now());
          return resolve();
        }
        const items = Object.entries(message.data).map(([mime, value]) => vscode.NotebookCellOutputItem.text(value, mime));
        await execution.appendOutput(new vscode.NotebookCellOutput(items));
      });
      const cellId = cell.document.uri.toString(); // as Microsoft's extension sends it
      helper.process.stdin.write(JSON.stringify({ id, cellId, code: cell.document.getText() }) + '\n');
    });
  }

  const folder = vscode.workspace.workspaceFolders[0].uri.fsPath;
  const write = (name, value) => {
    fs.writeFileSync(path.join(folder, `${name}.part`), JSON.stringify(value));
    fs.renameSync(path.join(folder, `${name}.part`), path.join(folder, name));
  };
  context.subscriptions.push(
    controller,
    { dispose: () => helpers.forEach(helper => helper.process.kill()) },
    vscode.commands.registerCommand('tests.restartKernel', () =>
      helpers.forEach(helper => helper.process.kill('SIGUSR1'))
    ),
    vscode.commands.registerCommand('tests.listTools', () =>
      write('tools.json', vscode.lm.tools.map(tool => tool.name))
    ),
    vscode.commands.registerCommand('tests.startAgent', async () => {
      context.subscriptions.push(vscode.lm.registerLanguageModelChatProvider('tests', model));
      await startAgent();
      write('agent.json', true);
    }),
    vscode.commands.registerCommand('tests.invokeTool', async () => {
      const { name, input } = JSON.parse(fs.readFileSync(path.join(folder, 'call.json'), 'utf8'));
      const tool = vscode.lm.tools.find(each => each.name.endsWith(name));
      try {
        const result = await vscode.lm.invokeTool(tool.name, { input, toolInvocationToken: undefined });
        write('result.json', { content: result.content.map(part => part.value) });
      } catch (error) {
        write('result.json', { error: String(error) });
      }
    })
  );
};
