/** The side panel's view: answers what its webview asks, and tells it of all changes. In the extension host. */
import * as vscode from 'vscode';

import { IStream } from '../../panel/host';
import { Kernels } from './kernels';
import { ACTIONS, IFrontState } from './notebook';

/** A message of the webview: a request to the panel's host, or something to do in a notebook. */
export type Asked = { id: number; method: keyof typeof ACTIONS | (typeof METHODS)[number]; args: unknown[] };
/** A message to the webview. */
export type Told =
  | { id: number; result?: unknown; error?: string }
  | { change: string }
  | { front: IFrontState; status: 'idle' | 'starting' };

const METHODS = ['act', 'findCall', 'findCell', 'findPicture', 'findClients', 'connectClient'] as const;

export class PanelView implements vscode.WebviewViewProvider {
  constructor(
    private readonly _root: vscode.Uri,
    private readonly _kernels: Kernels,
    private readonly _readFront: () => IFrontState
  ) {}

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

  setFront(front: IFrontState, status: 'idle' | 'starting' = 'idle'): void {
    this._tell({ front, status });
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this._view = view;
    const { webview } = view;
    const built = vscode.Uri.joinPath(this._root, 'built');
    webview.options = { enableScripts: true, localResourceRoots: [built] };
    webview.onDidReceiveMessage(message => void this._answer(message));
    view.onDidChangeVisibility(() => this.onVisible());
    view.onDidDispose(() => {
      this._stream?.close();
      this._view = this._stream = undefined;
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

  private async _answer({ id, method, args }: Asked | { id: 0; method: 'open'; args: [] }): Promise<void> {
    if (method === 'open') {
      this._stream?.close();
      this._stream = this._kernels.openChanges();
      this._stream.onmessage = ({ data }) => this._tell({ change: data });
      return this.setFront(this._readFront());
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
  private _stream?: IStream;
}
