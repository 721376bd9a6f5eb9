/**
 * The kernels of this machine, as the panel's host: what `mcp_notebook/jupyter` is in JupyterLab.
 *
 * Runs in the extension host, for its own store and for that of the webview. Kernels are known by
 * the files of their notebooks, which stay the same when a kernel is restarted.
 */
import { execFile } from 'child_process';
import * as fs from 'fs';

import { IHost } from '../../panel/host';
import { Action, Change, ICallDetails, IMachineClients, INotebookState, IRecordedCell } from '../../panel/messages';
import { merge } from '../../panel/store';
import { DetailsMessage, IRecord, KernelChange, Link, Request, WithoutId, readRecords } from './link';

const BY = 'you, in VS Code';
const REASON = 'The user stopped the call in VS Code.';

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
  ) {}

  /** The Pythons of the kernels, that of the newest one first. */
  get pythons(): string[] {
    return [...this._links.values()].flatMap(({ record }) => record.python ?? []).reverse();
  }

  /** Find the kernels that there are now; only questions of the notebooks that are open are seen here. */
  look(open: string[]): void {
    // The newest record of a notebook is the one of the extension that is loaded now.
    const newest = new Map(readRecords().map(record => [findKey(record), record]));
    this._links.forEach((link, kernel) => {
      const record = newest.get(kernel);
      // An open link says why its kernel leaves, after the record has gone.
      if (record ? record.id !== link.record.id : link.isClosed) {
        link.close();
        this._take({ kernel, changes: null });
      }
    });
    newest.forEach((record, kernel) => {
      if (!this._links.has(kernel)) {
        this._links.set(kernel, new Link(kernel, record, this._version, change => this._take(change)));
      }
    });
    this._links.forEach((link, kernel) => link.watch(open.includes(kernel) ? 'VS Code' : ''));
  }

  openChanges(onChange: (change: Change) => void): () => void {
    this._states.forEach((changes, kernel) => onChange({ kernel, changes }));
    onChange({ ready: true, requirement: '' });
    this._streams.add(onChange);
    return () => this._streams.delete(onChange);
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
    this._streams.clear();
    this._links.forEach(link => link.close());
  }

  private _runClients(...words: string[]): Promise<string> {
    const [python] = this.pythons;
    if (!python) {
      return Promise.reject(new Error('Run `%load_ext mcp_notebook` in a notebook first.'));
    }
    const args = ['-P', '-m', 'mcp_notebook.cli.panel_clients', ...words];
    const options = { cwd: this._folder, windowsHide: true };
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
    const link = this._links.get(kernel);
    if (!link || link.isClosed) {
      throw new Error('The notebook has no running mcp-notebook. Run `%load_ext mcp_notebook` in it.');
    }
    if (record !== undefined && link.record.id !== record) {
      throw new Error('The kernel was restarted in the meantime: look at the panel again.');
    }
    return link;
  }

  private _take(change: KernelChange): void {
    const { kernel } = change;
    if ('changes' in change) {
      if (change.changes) {
        this._states.set(kernel, merge(this._states.get(kernel), change.changes));
      } else {
        this._links.delete(kernel);
        if (!this._states.delete(kernel)) {
          return;
        }
      }
    }
    this._streams.forEach(tell => tell(change));
  }

  /** By the names of kernels in the panel. */
  private readonly _links = new Map<string, Link>();
  private readonly _states = new Map<string, INotebookState>();
  private readonly _streams = new Set<(change: Change) => void>();
}

function findKey(record: IRecord): string {
  return record.notebook ? normalize(record.notebook) : record.id;
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
