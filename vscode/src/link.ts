/**
 * Records of kernels, and the conversation of a watcher with one kernel.
 *
 * Runs in the extension host. The protocol's specification is the docstring of
 * `mcp_notebook/wire/__init__.py`, and of records `mcp_notebook/discovery/records.py`;
 * `tests/vscode/test_messages.py` compares the shapes below with the Python ones.
 */
import * as fs from 'fs';
import * as net from 'net';
import * as os from 'os';
import * as path from 'path';

import { Change, Changes, Decision, ICallDetails } from '../../panel/messages';

export const PROTOCOL = 1;
const NOT_UNDERSTOOD = 'The side panel does not understand this kernel. Install the same version of mcp-notebook for both.';
/** Milliseconds that a kernel has to answer. */
const ANSWER_LIMIT = 10_000;

export interface IRecord {
  id: string;
  pid: number;
  started: number;
  host: string;
  name: string;
  notebook?: string | null;
  python?: string | null;
  owner?: 'user' | 'bridge';
  socket?: string | null;
  port?: number | null;
  token?: string | null;
}

/** Where this window shows a notebook's questions: here if it has the notebook open. */
export type Frontend = 'Jupyter' | 'VS Code' | '';

/** What a watcher sends. */
export type Request =
  | { type: 'stop_call'; id: number; number: number; reason: string; by: string }
  | { type: 'answer_consent'; id: number; number: number; decision: Decision }
  | { type: 'switch_tool'; id: number; tool: string; on: boolean }
  | { type: 'remove_tool'; id: number; tool: string }
  | { type: 'lock_tool'; id: number; tool: string }
  | { type: 'switch_proposals'; id: number; on: boolean }
  | { type: 'ask_call'; id: number; number: number; as_cell?: boolean; picture?: number | null; is_small?: boolean };
export type Sent =
  | { type: 'hello'; version: string; protocol: number; token: string | null }
  | { type: 'watch_notebook'; frontend: Frontend }
  | Request;

/** What it gets; other messages are for bridges. */
export interface ICallStopped {
  type: 'call_stopped';
  id: number;
  tool?: string | null;
  state: string;
  is_stopping: boolean;
}
export interface IPanelAnswer {
  type: 'panel_answer';
  id: number;
  message: string;
  is_error: boolean;
}
export type DetailsMessage = ICallDetails & {
  type: 'call_details';
  id: number;
  is_known: boolean;
  has_cell: boolean;
};
export type Answer = ICallStopped | IPanelAnswer | DetailsMessage;
export type Received =
  | Answer
  | { type: 'welcome'; version: string; protocol: number }
  | { type: 'refused'; message: string; protocol: number }
  | ({ type: 'notebook_state' } & Changes)
  | { type: 'show_panel' }
  | { type: 'goodbye'; is_unload: boolean };

/** What a link tells its owner. */
export type KernelChange = Exclude<Change, { ready: true }>;

interface IAsked {
  resolve: (answer: [Answer, Buffer[]]) => void;
  reject: (error: Error) => void;
}

/** Leaves the number of the request out of each kind of it. */
export type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never;

/** Return the folder of mcp-notebook's files, as `settings.Settings` does. */
export function findHome(): string {
  return process.env.MCP_NOTEBOOK_HOME || path.join(os.homedir(), '.mcp-notebook');
}

/** Return the live kernels of this user on this machine, oldest first. */
export function readRecords(): IRecord[] {
  const folder = path.join(findHome(), 'kernels');
  let names: string[] = [];
  try {
    names = fs.readdirSync(folder);
  } catch {
    // The folder comes with the first kernel.
  }
  const records = names.filter(name => name.endsWith('.json')).flatMap(name => {
    try {
      return readRecord(path.join(folder, name));
    } catch {
      return []; // its kernel has just left, or a newer version wrote it
    }
  });
  return records.sort((a, b) => a.started - b.started);
}

function readRecord(file: string): IRecord[] {
  const status = fs.lstatSync(file);
  // Tools of other users must not reach this user's assistants.
  if (!status.isFile() || !isOwn(status) || (process.getuid && status.mode & 0o077)) {
    return [];
  }
  const record: IRecord = JSON.parse(fs.readFileSync(file, 'utf8'));
  const isHere = record.host === os.hostname() && (!record.socket || isOwn(fs.statSync(record.socket)));
  process.kill(record.pid, 0); // throws if the process has ended
  // A headless kernel is served by the bridge that started it, and by nobody else.
  return isHere && record.owner !== 'bridge' && `${record.id}.json` === path.basename(file) ? [record] : [];
}

function isOwn({ uid }: fs.Stats): boolean {
  return !process.getuid || uid === process.getuid();
}

export class Link {
  constructor(
    private readonly _kernel: string,
    readonly record: IRecord,
    version: string,
    private readonly _tell: (change: KernelChange) => void
  ) {
    const { socket, port, token = null } = record;
    this._socket = socket ? net.connect(socket) : net.connect(port ?? 0, '127.0.0.1');
    this._socket.on('error', () => undefined); // `close` follows
    this._socket.on('close', () => this.close());
    this._socket.on('readable', () => this._goOn()); // a listener for each wait would be called at once
    this._send({ type: 'hello', version, protocol: PROTOCOL, token });
    this._listen().catch(() => this._giveUp(NOT_UNDERSTOOD));
  }

  /** Whether it has ended: a kernel that is not understood stays known, without a conversation. */
  isClosed = false;

  /** Say where the notebook's questions are seen. */
  watch(frontend: Frontend): void {
    if (frontend !== this._frontend) {
      this._frontend = frontend;
      if (this._isWelcome) {
        this._send({ type: 'watch_notebook', frontend });
      }
    }
  }

  /** Send a request, and return its answer with the attachments. */
  ask(request: WithoutId<Request>): Promise<[Answer, Buffer[]]> {
    const id = ++this._last;
    const late = new Error(`The kernel of '${this.record.name}' did not answer within 10 s.`);
    return new Promise((resolve, reject) => {
      this._asked.set(id, { resolve, reject });
      setTimeout(reject, ANSWER_LIMIT, late); // nothing, if there is an answer
      this._send({ ...request, id } as Request);
    });
  }

  close(isUnload = false): void {
    this._end({ kernel: this._kernel, changes: null, unloaded: isUnload });
  }

  /** End, and say why the kernel cannot tell anything: it is alive. */
  private _giveUp(trouble: string): void {
    const state = { name: this.record.name, trouble, trouble_kind: 'version' } as const;
    this._end({ kernel: this._kernel, changes: state });
  }

  private _end(last: KernelChange): void {
    if (!this.isClosed) {
      this.isClosed = true;
      this._socket.destroy();
      const gone = new Error(`The kernel of '${this.record.name}' ended.`);
      this._asked.forEach(({ reject }) => reject(gone));
      this._tell(last);
    }
  }

  private _send(message: Sent): void {
    const body = Buffer.from(JSON.stringify(message));
    const head = Buffer.alloc(4);
    head.writeUInt32BE(body.length);
    this._socket.write(Buffer.concat([head, body]));
  }

  /** Take what the kernel says, frame by frame. */
  private async _listen(): Promise<void> {
    while (!this.isClosed) {
      const size = (await this._read(4)).readUInt32BE();
      const header = (await this._read(size)).toString();
      const message: Received & { attachments?: number[] } = JSON.parse(header, (_, value) => value ?? undefined);
      const attachments: Buffer[] = [];
      for (const part of message.attachments ?? []) {
        attachments.push(await this._read(part));
      }
      this._handle(message, attachments);
    }
  }

  /** Return the next bytes once all are there. */
  private async _read(size: number): Promise<Buffer> {
    for (;;) {
      const bytes: Buffer | null = size ? this._socket.read(size) : Buffer.alloc(0);
      if (bytes?.length === size) {
        return bytes;
      }
      await new Promise<void>(resolve => (this._goOn = resolve)); // for ever, after the end
    }
  }

  private _handle(message: Received, attachments: Buffer[]): void {
    switch (message.type) {
      case 'welcome':
        if (message.protocol !== PROTOCOL) {
          const versions = `version ${message.protocol} of the link's protocol, but this extension speaks version ${PROTOCOL}`;
          return this._giveUp(
            `The kernel's mcp-notebook speaks ${versions}. Install the extension anew with \`mcp-notebook install vscode\`.`
          );
        }
        this._isWelcome = true;
        return this._send({ type: 'watch_notebook', frontend: this._frontend });
      case 'refused':
        return this._giveUp(message.message);
      case 'notebook_state': {
        const { type: _, ...changes } = message;
        return this._tell({ kernel: this._kernel, changes });
      }
      case 'show_panel':
        return this._tell({ kernel: this._kernel, show: true });
      case 'goodbye':
        return this.close(message.is_unload);
      default: // others have no number of a request
        this._asked.get(message.id)?.resolve([message, attachments]);
        this._asked.delete(message.id);
    }
  }

  private readonly _socket: net.Socket;
  private _frontend: Frontend = '';
  private _isWelcome = false;
  private _goOn = () => undefined as void;
  private _last = 0;
  private readonly _asked = new Map<number, IAsked>();
}
