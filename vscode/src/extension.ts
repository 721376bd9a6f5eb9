/** VS Code's extension: the panel, the status bar, questions as notifications, and the commands. */
import * as vscode from 'vscode';

import { describeNotebook } from '../../panel/format';
import { IAsked, PanelStore } from '../../panel/store';
import { Kernels } from './kernels';
import { findNotebook, readFront } from './notebook';
import { Servers } from './servers';
import { TEXTS } from './texts';
import { PanelView } from './view';

/** Milliseconds between two looks at records and settings, and of the clock in the status bar. */
const LOOK = 1000;
/** Characters of a question in a notification: a longer one is read in the panel. */
const MAX_QUESTION = 400;
const SHOW = 'mcpNotebook.panel.focus';

export function activate(context: vscode.ExtensionContext): void {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? '/';
  const kernels = new Kernels(context.extension.packageJSON.version, folder);
  const store = new PanelStore(kernels);
  const view = new PanelView(context, kernels);
  const servers = new Servers(context, kernels);
  const bar = new StatusBar(context, store);
  const notifications = new Notifications(store, kernels, view);

  const look = () => {
    kernels.look(readFront().open);
    servers.update();
    if (store.current?.open_calls?.length) {
      bar.update();
    }
  };
  const follow = () => {
    store.setFront(readFront().front);
    view.updateFront();
    look();
  };
  const update = () => {
    const asks = store.questions.length;
    view.setBadge(asks);
    bar.update();
    notifications.update();
    servers.update();
    void vscode.commands.executeCommand('setContext', 'mcpNotebook.asks', asks > 0);
    void vscode.commands.executeCommand('setContext', 'mcpNotebook.runs', !!store.current?.open_calls?.length);
  };
  view.onVisible = update;
  store.changed.connect(update);
  store.shown.connect((_, kernel) => {
    // Another window has the notebook, or none.
    if (findNotebook(kernel)) {
      void vscode.commands.executeCommand(SHOW);
    }
  });
  const tell = (worked: boolean[]) => say(worked.every(Boolean) ? store.note : new Error(store.note));
  const timer = setInterval(look, LOOK);
  context.subscriptions.push(
    kernels,
    { dispose: () => clearInterval(timer) },
    vscode.window.onDidChangeActiveNotebookEditor(follow),
    vscode.workspace.onDidOpenNotebookDocument(follow),
    vscode.workspace.onDidCloseNotebookDocument(follow),
    vscode.workspace.onDidChangeNotebookDocument(change => change.contentChanges.length && follow()),
    vscode.window.onDidChangeWindowState(update),
    vscode.commands.registerCommand('mcpNotebook.stopCalls', () => store.stopCalls().then(tell)),
    vscode.commands.registerCommand('mcpNotebook.denyCalls', () => store.denyCalls().then(tell))
  );
  follow();
  update();
}

/** What is in the status bar while the notebook in front has tools, with a clock while one runs. */
class StatusBar {
  constructor(
    context: vscode.ExtensionContext,
    private readonly _store: PanelStore
  ) {
    context.subscriptions.push(this._item, this._stop);
    this._item.command = SHOW;
    this._item.tooltip = 'Show the tools of the notebook';
    this._stop.command = 'mcpNotebook.stopCalls';
    this._stop.text = '$(debug-stop)';
  }

  update(): void {
    const notebook = this._store.current;
    if (!notebook?.tools) {
      this._item.hide();
      return this._stop.hide();
    }
    const [call] = notebook.open_calls;
    if (call) {
      this._stop.tooltip = `Stop ${call.tool}`;
      this._stop.show();
    } else {
      this._stop.hide();
    }
    // An icon is written as `$(name)`: a client's name is none.
    const text = describeNotebook(TEXTS, notebook, notebook.questions.length, Date.now() / 1000);
    this._item.text = `$(tools) ${makePlain(text)}`;
    this._item.show();
  }

  private readonly _item = vscode.window.createStatusBarItem('mcpNotebook.tools', vscode.StatusBarAlignment.Left, 10);
  private readonly _stop = vscode.window.createStatusBarItem('mcpNotebook.stop', vscode.StatusBarAlignment.Left, 9);
}

/** Tells of questions that the user does not see in the panel. */
class Notifications {
  constructor(
    private readonly _store: PanelStore,
    private readonly _kernels: Kernels,
    private readonly _view: PanelView
  ) {}

  update(): void {
    for (const asked of this._store.questions) {
      const key = `${this._store.notebooks.get(asked.kernel)?.kernel} ${asked.question.number}`;
      const isSeen =
        this._view.isVisible && vscode.window.state.focused && asked.kernel === this._store.front?.kernel;
      // A window that has not opened the notebook leaves its questions to the one that has.
      if (!isSeen && findNotebook(asked.kernel) && !this._told.has(key)) {
        this._told.add(key);
        void this._tell(asked);
      }
    }
  }

  private async _tell({ kernel, question }: IAsked): Promise<void> {
    // Numbers begin again when a kernel is restarted: the answer is for the start that asked.
    const { name = '', kernel: record } = this._store.notebooks.get(kernel) ?? {};
    // VS Code makes links of `[text](command:...)`, and one line of all.
    const text = makePlain(`${name}: ${question.text}`);
    const isShort = text.length <= MAX_QUESTION;
    const shown = isShort ? text : makePlain(`${name}: may ${question.tool} run?`).slice(0, MAX_QUESTION);
    const answers = isShort ? ['Allow', 'Deny', 'Show'] : ['Deny', 'Show'];
    const answer = await vscode.window.showWarningMessage(shown, ...answers);
    if (answer === 'Show') {
      await vscode.commands.executeCommand(SHOW);
    } else if (answer) {
      const decision = answer === 'Allow' ? 'once' : 'deny';
      // Answered in the panel meanwhile, say: this notification stays until it is closed.
      await this._kernels.act(kernel, record, { action: 'answer', question: question.number, decision }).then(say, say);
    }
  }

  /** Questions that were told, also those that were answered since. */
  private readonly _told = new Set<string>();
}

/** Say what became of something that the user did; what went wrong stays until it is read. */
function say(said: string | Error): void {
  if (said instanceof Error) {
    void vscode.window.showInformationMessage(makePlain(said.message));
  } else {
    vscode.window.setStatusBarMessage(makePlain(said), 10_000);
  }
}

/** Return a text in one line, in which VS Code finds neither links nor icons. */
function makePlain(text: string): string {
  return text.replace(/\]\(/g, '] (').replace(/\$\(/g, '$ (').replace(/([:?]?)\s*\n\s*/g, (_, end) => (end ? `${end} ` : ' · '));
}
