/**
 * The kernels of this machine, as the panel's host: what `mcp_notebook/jupyter` is in JupyterLab.
 *
 * Runs in the extension host, for its own store and for that of the webview. Kernels are known by
 * the files of their notebooks, which stay the same when a kernel is restarted.
 */
import { execFile } from 'child_process';
import * as fs from 'fs';
import * as os from 'os';
import * as path from 'path';

import { IHost, IStream } from '../../panel/host';
import { Action, Change, Changes, ICallDetails, IMachineClients, INotebookState, IRecordedCell } from '../../panel/messages';
import { merge } from '../../panel/store';
import { DetailsMessage, IRecord, Link, Request, WithoutId, readRecords } from './link';

/** Milliseconds between two looks at the records, where the system tells of no change. */
const LOOK = 1000;
/** Bytes that the command about clients may print. */
const MAX_OUTPUT = 2 ** 20;
const BY = 'you, in VS Code';
const REASON = 'The user stopped the call in VS Code.';

/** Return the folder of mcp-notebook's files, as `settings.Settings` does. */
export function findHome(): string {
  return process.env.MCP_NOTEBOOK_HOME || path.join(os.homedir(), '.mcp-notebook');
}

/** Return a file's path as all who name the file write it. */
export function normalize(file: string): string {
  try {
    return fs.realpathSync.native(file);
  } catch {
    return file;
  }
}

export class Kernels implements IHost {
  constructor(
    private readonly _version: string,
    /** The folder in which `Connect` looks for clients' settings. */
    private readonly _folder: string
  ) {
    const folder = path.join(findHome(), 'kernels');
    const look = () => this._look(folder);
    look();
    this._timer = setInterval(look, LOOK);
    try {
      this._watcher = fs.watch(folder, look);
      this._watcher.on('error', () => undefined);
    } catch {
      // The folder comes with the first kernel; until then, it is looked for.
    }
  }

  /** Called with a kernel whose process has taken the place of another one. */
  onRestart: (kernel: string) => void = () => undefined;

  /** The Pythons of the kernels, that of the newest one first. */
  get pythons(): string[] {
    return [...this._links.values()].flatMap(({ link }) => link.record.python ?? []).reverse();
  }

  /** Say which notebooks this window has open: only their questions are seen here. */
  setOpen(kernels: Set<string>): void {
    this._open = kernels;
    this._links.forEach(({ key, link }) => link.watch(kernels.has(key) ? 'VS Code' : ''));
  }

  isOpen(kernel: string): boolean {
    return this._open.has(kernel);
  }

  openChanges(): IStream {
    const stream: IStream = { onmessage: null, onclose: null, close: () => this._streams.delete(stream) };
    // Once its owner listens.
    queueMicrotask(() => {
      this._states.forEach((changes, kernel) => tell(stream, { kernel, changes }));
      tell(stream, { ready: true, requirement: '' });
      this._streams.add(stream);
    });
    return stream;
  }

  hasChanges(): Promise<boolean> {
    return Promise.resolve(true);
  }

  async act(kernel: string, record: string | undefined, action: Action): Promise<string> {
    const link = this._get(kernel, record);
    const [answer] = await link.ask(describeAction(action));
    if (answer.type === 'panel_answer') {
      if (answer.is_error) {
        throw new Error(answer.message);
      }
      return answer.message;
    }
    if (answer.type !== 'call_stopped' || !answer.tool) {
      throw new Error('The call has ended already.');
    }
    return answer.state === 'cancelled'
      ? `Stopped ${answer.tool}.${answer.is_stopping ? ' Its code has not reacted yet.' : ''}`
      : `${answer.tool} had ended before: ${answer.state}.`;
  }

  async findCall(kernel: string, number: number): Promise<ICallDetails> {
    return (await this._askCall(kernel, number, {}))[0];
  }

  async findCell(kernel: string, number: number): Promise<IRecordedCell> {
    const [details, parts] = await this._askCall(kernel, number, { as_cell: true });
    if (!details.has_cell) {
      throw new Error('The notebook no longer has the result of this call.');
    }
    return JSON.parse(parts[0].toString());
  }

  async findPicture(kernel: string, record: string, number: number, index: number | 'thumbnail'): Promise<string> {
    this._get(kernel, record);
    const isSmall = index === 'thumbnail';
    const wanted = { picture: isSmall ? 0 : index, is_small: isSmall };
    const [details, parts] = await this._askCall(kernel, number, wanted);
    if (!parts.length) {
      throw new Error('The notebook no longer has this picture, or it is too large.');
    }
    return `data:${details.pictures[0]};base64,${parts[0].toString('base64')}`;
  }

  /** The clients of this machine, without VS Code: it has the server of this extension. */
  async findClients(): Promise<IMachineClients> {
    const found: IMachineClients = JSON.parse(await this._runClients());
    return { ...found, clients: found.clients.filter(client => client.name !== 'vscode') };
  }

  connectClient(client: string, replace: boolean): Promise<string> {
    return this._runClients(client, ...(replace ? ['replace'] : []));
  }

  copy(): void {
    throw new Error('The webview copies.');
  }

  dispose(): void {
    clearInterval(this._timer);
    this._watcher?.close();
    this._streams.clear();
    this._links.forEach(({ link }) => link.close());
  }

  private _runClients(...words: string[]): Promise<string> {
    const [python] = this.pythons;
    if (!python) {
      return Promise.reject(new Error('Run `%load_ext mcp_notebook` in a notebook first.'));
    }
    const args = ['-P', '-m', 'mcp_notebook.cli.panel_clients', ...words];
    const options = { cwd: this._folder, maxBuffer: MAX_OUTPUT, windowsHide: true };
    return new Promise((resolve, reject) => {
      execFile(python, args, options, (error, output, errors) =>
        error ? reject(new Error(errors.trim() || error.message)) : resolve(output.trim())
      );
    });
  }

  private async _askCall(
    kernel: string,
    number: number,
    part: { as_cell?: boolean; picture?: number; is_small?: boolean }
  ): Promise<[DetailsMessage, Buffer[]]> {
    const [answer, parts] = await this._get(kernel).ask({ type: 'ask_call', number, ...part });
    if (answer.type !== 'call_details' || !answer.is_known) {
      throw new Error('The notebook no longer has this call.');
    }
    return [answer, parts];
  }

  private _get(kernel: string, record?: string): Link {
    const link = [...this._links.values()].filter(({ key }) => key === kernel).pop()?.link;
    if (!link || link.isClosed) {
      throw new Error('The notebook has no running mcp-notebook. Run `%load_ext mcp_notebook` in it.');
    }
    if (record !== undefined && link.record.id !== record) {
      throw new Error('The kernel was restarted in the meantime: look at the panel again.');
    }
    return link;
  }

  private _look(folder: string): void {
    const records = readRecords(folder);
    // The newest record of a notebook is the one of the extension that is loaded now.
    const newest = new Map(records.map(record => [findKey(record), record]));
    const ids = new Set([...newest.values()].map(record => record.id));
    this._links.forEach((_, id) => !ids.has(id) && this._drop(id));
    newest.forEach((record, key) => !this._links.has(record.id) && this._openLink(key, record));
  }

  private _openLink(key: string, record: IRecord): void {
    const { id } = record;
    try {
      const link = new Link(record, this._version, {
        onChanges: changes => this._take(key, record, changes),
        onShow: () => this._send({ kernel: key, show: true }),
        onEnd: trouble => {
          if (!trouble) {
            return this._drop(id);
          }
          // It stays among the links, and is not asked again.
          const state = { name: record.name, trouble, trouble_kind: 'version' } as INotebookState;
          this._states.set(key, state);
          this._send({ kernel: key, changes: state });
        }
      });
      this._links.set(id, { key, link });
      link.watch(this._open.has(key) ? 'VS Code' : '');
    } catch {
      // The socket went in this moment, or is another user's.
    }
  }

  private _take(key: string, record: IRecord, changes: Changes): void {
    const before = this._pids.get(key);
    if (before !== undefined && before !== record.pid) {
      this.onRestart(key);
    }
    this._pids.set(key, record.pid);
    this._states.set(key, merge(this._states.get(key), changes));
    this._send({ kernel: key, changes });
  }

  private _drop(id: string): void {
    const known = this._links.get(id);
    this._links.delete(id);
    known?.link.close();
    if (known && this._states.delete(known.key)) {
      this._send({ kernel: known.key, changes: null });
    }
  }

  private _send(change: Change): void {
    this._streams.forEach(stream => tell(stream, change));
  }

  /** With the names of kernels in the panel, by the ids of their records, oldest first. */
  private readonly _links = new Map<string, { key: string; link: Link }>();
  private readonly _states = new Map<string, INotebookState>();
  private readonly _pids = new Map<string, number>();
  private readonly _streams = new Set<IStream>();
  private _open = new Set<string>();
  private readonly _timer: NodeJS.Timeout;
  private _watcher?: fs.FSWatcher;
}

function findKey(record: IRecord): string {
  return record.notebook ? normalize(record.notebook) : record.id;
}

function tell(stream: IStream, change: Change): void {
  stream.onmessage?.call(stream as WebSocket, { data: JSON.stringify(change) } as MessageEvent);
}

/** Return the message of the link for an action. */
function describeAction(action: Action): WithoutId<Request> {
  switch (action.action) {
    case 'stop':
      return { type: 'stop_call', number: action.call, reason: REASON, by: BY };
    case 'answer':
      return { type: 'answer_consent', number: action.question, decision: action.decision };
    case 'switch':
      return { type: 'switch_tool', tool: action.tool, on: action.on };
    case 'remove':
      return { type: 'remove_tool', tool: action.tool };
    case 'lock':
      return { type: 'lock_tool', tool: action.tool };
    case 'propose':
      return { type: 'switch_proposals', on: action.on };
    default: // the panel shows proposals only where their cells can be shown
      throw new Error('Run %mcp propose in the notebook to answer a proposal.');
  }
}
