/** What the panel has of the application around it: JupyterLab's page, or VS Code's webview. */
import { Action, Change, ICallDetails, IMachineClients, IRecordedCell } from './messages';

/** The line that makes a notebook's functions tools, and cells that have it. */
export const LOAD = '%load_ext mcp_notebook';
export const LOADS = /^[ \t]*%(load|reload)_ext[ \t]+mcp_notebook\b/m;

/** The panel's language: JupyterLab's `TranslationBundle`, as far as the panel uses it. */
export interface ITexts {
  __(text: string, ...values: unknown[]): string;
  _n(one: string, many: string, number: number, ...values: unknown[]): string;
}

/** The Jupyter server of the page. */
export interface IJupyterServer {
  /** The address at which clients reach its notebooks. */
  url: string;
  token: string;
  /** Where a JupyterHub makes tokens. */
  tokenPage: string;
}

export interface IHost {
  /** None in VS Code, which reads the links of kernels itself. */
  readonly server?: IJupyterServer;

  /** Open the stream of changes, and return what closes it; `onLost` is called if it ends by itself. */
  openChanges(onChange: (change: Change) => void, onLost: () => void): () => void;

  /** Return whether there can be a stream at all; absent where there always is one. */
  hasChanges?(): Promise<boolean>;

  /**
   * Do something in a notebook, and return a sentence about what became of it.
   *
   * Numbers of calls and questions are those of a start of the kernel, which `record` names.
   */
  act(kernel: string, record: string | undefined, action: Action): Promise<string>;

  /** Return all that is known of a call. */
  findCall(kernel: string, number: number): Promise<ICallDetails>;

  /** Return a call as a cell, with its result. */
  findCell(kernel: string, number: number): Promise<IRecordedCell>;

  /** Return an address of a picture in a call's result, or of the thumbnail of the first one. */
  findPicture(
    kernel: string,
    record: string,
    number: number,
    index: number | 'thumbnail'
  ): Promise<string>;

  /** Return the MCP clients on the machine of the notebooks. */
  findClients(): Promise<IMachineClients>;

  /** Write a client's entry, and return what was done and what there is to do next. */
  connectClient(client: string, replace: boolean): Promise<string>;

  /** Copy a text to the clipboard, after a click. */
  copy(text: string): void;
}
