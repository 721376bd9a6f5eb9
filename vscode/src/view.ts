/** The side panel's view: answers what its webview asks, and tells it of all changes. In the extension host. */
import * as vscode from 'vscode';

import { Change } from '../../panel/messages';
import { Kernels } from './kernels';
import { ACTIONS, IFrontState, readFront } from './notebook';

/** A message of the webview: a request to the panel's host, or something to do in a notebook. */
export type Asked = { id: number; method: keyof typeof ACTIONS | (typeof METHODS)[number] | 'open'; args: unknown[] };
export type Answered = { id: number; result?: unknown; error?: string };
/** A message to the webview. */
export type Told = Answered | { change: Change } | IFrontState;

const METHODS = ['act', 'findCall', 'findCell', 'findPicture', 'findClients', 'connectClient'] as const;

export class PanelView implements vscode.WebviewViewProvider {
  constructor(
    private readonly _context: vscode.ExtensionContext,
    private readonly _kernels: Kernels
  ) {
    _context.subscriptions.push(vscode.window.registerWebviewViewProvider('mcpNotebook.panel', this));
  }

  /** Called when it was shown or hidden. */
  onVisible: () => void = () => undefined;

  get isVisible(): boolean {
    return this._view?.visible ?? false;
  }

  setBadge(questions: number): void {
    if (this._view) {
      const tooltip = questions === 1 ? '1 question' : `${questions} questions`;
      this._view.badge = { value: questions, tooltip };
    }
  }

  updateFront(): void {
    this._tell(readFront());
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this._view = view;
    const { webview } = view;
    const built = vscode.Uri.joinPath(this._context.extensionUri, 'built');
    webview.options = { enableScripts: true, localResourceRoots: [built] };
    webview.onDidReceiveMessage(message => void this._answer(message));
    view.onDidChangeVisibility(() => this.onVisible());
    view.onDidDispose(() => {
      this._close?.();
      this._view = undefined;
      this.onVisible();
    });
    const find = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(built, name));
    const policy = `default-src 'none'; img-src data:; connect-src data:; style-src ${webview.cspSource}; script-src ${webview.cspSource}`;
    webview.html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Tools of the notebook</title>
<meta http-equiv="Content-Security-Policy" content="${policy}">
<link rel="stylesheet" href="${find('style.css')}"></head>
<body><div id="root" class="jp-mcp-panel"></div><script src="${find('panel.js')}"></script></body></html>`;
    this.onVisible();
  }

  private async _answer({ id, method, args }: Asked): Promise<void> {
    if (method === 'open') {
      this._close?.();
      this._close = this._kernels.openChanges(change => this._tell({ change }));
      return this.updateFront();
    }
    try {
      const isOfHost = (METHODS as readonly string[]).includes(method);
      const place = (isOfHost ? this._kernels : ACTIONS) as unknown as Record<string, (...args: unknown[]) => unknown>;
      if (!isOfHost && !Object.hasOwn(ACTIONS, method)) {
        throw new Error(`The panel asked for '${method}'.`);
      }
      this._tell({ id, result: await place[method](...args) });
    } catch (error) {
      this._tell({ id, error: error instanceof Error ? error.message : String(error) });
    }
  }

  private _tell(message: Told): void {
    void this._view?.webview.postMessage(message);
  }

  private _view?: vscode.WebviewView;
  private _close?: () => void;
}
