/** The panel's host in JupyterLab: the routes of `mcp_notebook/jupyter/panel_handlers.py`. */
import { Clipboard } from '@jupyterlab/apputils';
import { PageConfig, URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import { IHost, IJupyterServer, ITexts } from '../../panel/host';
import { Action, Change, ICallDetails, IMachineClients, IRecordedCell } from '../../panel/messages';

const BASE = 'mcp-notebook/api';

/** The server, and the language of what is said about it. */
export class JupyterHost implements IHost {
  constructor(
    private readonly _settings: ServerConnection.ISettings,
    private readonly _trans: ITexts
  ) {
    this.server = {
      url: URLExt.join(_settings.baseUrl, 'mcp-notebook'),
      token: PageConfig.getToken(),
      tokenPage: URLExt.join(PageConfig.getOption('hubPrefix') || '/hub/', 'token')
    };
  }

  readonly server: IJupyterServer;

  openChanges(onChange: (change: Change) => void, onLost: () => void): () => void {
    const url = URLExt.join(this._settings.wsUrl, BASE, 'changes');
    // A WebSocket has no headers of its own.
    const query: { [name: string]: string } = {};
    const xsrf = /(?:^|; *)_xsrf=([^;]*)/.exec(document.cookie);
    if (xsrf) {
      query._xsrf = xsrf[1];
    }
    if (this._settings.appendToken && this._settings.token) {
      query.token = this._settings.token;
    }
    const socket = new this._settings.WebSocket(url + URLExt.objectToQueryString(query));
    socket.onmessage = event => onChange(JSON.parse(event.data));
    socket.onclose = onLost;
    return () => {
      socket.onclose = socket.onmessage = null;
      socket.close();
    };
  }

  /** Return whether the server has the extension at all. */
  async hasChanges(): Promise<boolean> {
    const url = URLExt.join(this._settings.baseUrl, BASE, 'state');
    const response = await ServerConnection.makeRequest(url, {}, this._settings);
    return response.status !== 404;
  }

  async act(kernel: string, record: string | undefined, action: Action): Promise<string> {
    const body = JSON.stringify({ kernel, record, ...action });
    return (await this._request<{ message: string }>('actions', { method: 'POST', body })).message;
  }

  findCall(kernel: string, number: number): Promise<ICallDetails> {
    return this._request<ICallDetails>(`calls/${encodeURIComponent(kernel)}/${number}`);
  }

  findCell(kernel: string, number: number): Promise<IRecordedCell> {
    return this._request<IRecordedCell>(`calls/${encodeURIComponent(kernel)}/${number}/cell`);
  }

  /**
   * Browsers keep pictures by their address: `record` is another one after each start of the
   * kernel, whose calls are counted from 1 again.
   */
  async findPicture(
    kernel: string,
    record: string,
    number: number,
    index: number | 'thumbnail'
  ): Promise<string> {
    const part = index === 'thumbnail' ? index : `pictures/${index}`;
    const path = `calls/${encodeURIComponent(kernel)}/${number}/${part}`;
    const url = URLExt.join(this._settings.baseUrl, BASE, path);
    return url + URLExt.objectToQueryString({ record });
  }

  findClients(): Promise<IMachineClients> {
    return this._request<IMachineClients>('clients');
  }

  async connectClient(client: string, replace: boolean): Promise<string> {
    const body = JSON.stringify({ client, replace });
    return (await this._request<{ message: string }>('clients', { method: 'POST', body })).message;
  }

  copy(text: string): void {
    Clipboard.copyToSystem(text);
  }

  private async _request<T>(path: string, init: RequestInit = {}): Promise<T> {
    const url = URLExt.join(this._settings.baseUrl, BASE, path);
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(url, init, this._settings);
    } catch {
      throw new Error(
        this._trans.__('The Jupyter server cannot be reached. Try again in a moment.')
      );
    }
    let body;
    try {
      body = await response.json();
    } catch {
      throw new Error(this._explainOtherAnswer(response.status));
    }
    if (!response.ok) {
      throw new Error(body.message ?? this._explainOtherAnswer(response.status));
    }
    return body;
  }

  /** Explain an answer that is not ours: the page of a proxy, or one to log in. */
  private _explainOtherAnswer(status: number): string {
    const trans = this._trans;
    return status >= 500
      ? trans.__('The Jupyter server, or a proxy before it, answered with error %1. Try again in a moment.', status)
      : trans.__('The Jupyter server did not answer as expected (HTTP %1). Reload the page: you may have to log in again.', status);
  }
}
