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

import { Changes, Decision, ICallDetails } from '../../panel/messages';

export const PROTOCOL = 1;
/** Bytes of a header, and of it with the attachments: no kernel sends more of them here. */
const MAX_HEADER = 64 * 2 ** 20;
const MAX_FRAME = 128 * 2 ** 20;
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
  | { type: 'show_panel' };

interface IAsked {
  resolve: (answer: [Answer, Buffer[]]) => void;
  reject: (error: Error) => void;
  timer: NodeJS.Timeout;
}

/** Leaves the number of the request out of each kind of it. */
export type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never;

/** Return the live kernels of this user on this machine, oldest first. */
export function readRecords(folder: string): IRecord[] {
  let names: string[];
  try {
    names = fs.readdirSync(folder);
  } catch {
    return [];
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
  const uid = process.getuid?.();
  // Tools of other users must not reach this user's assistants.
  if (!status.isFile() || (uid !== undefined && (status.uid !== uid || status.mode & 0o077))) {
    return [];
  }
  const record: IRecord = JSON.parse(fs.readFileSync(file, 'utf8'));
  const isHere = record.host === os.hostname() && isAlive(record.pid);
  // A headless kernel is served by the bridge that started it, and by nobody else.
  return `${record.id}.json` === path.basename(file) && record.owner !== 'bridge' && isHere
    ? [record]
    : [];
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** What a link tells its owner. */
export interface IListener {
  onChanges(changes: Changes): void;
  onShow(): void;
  /** Called once; `trouble` says why the kernel cannot tell anything, if it is alive. */
  onEnd(trouble?: string): void;
}

export class Link {
  constructor(
    readonly record: IRecord,
    private readonly _version: string,
    private readonly _listener: IListener
  ) {
    const uid = process.getuid?.();
    const { socket, port } = record;
    if (socket && uid !== undefined && fs.statSync(socket).uid !== uid) {
      throw new Error(`${socket} belongs to another user.`);
    }
    this._socket = socket ? net.connect(socket) : net.connect(port ?? 0, '127.0.0.1');
    this._socket.on('connect', () =>
      this._send({ type: 'hello', version: this._version, protocol: PROTOCOL, token: record.token ?? null })
    );
    this._socket.on('data', data => this._take(data));
    this._socket.on('error', () => undefined); // `close` follows
    this._socket.on('close', () => this.close());
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
      this._asked.set(id, { resolve, reject, timer: setTimeout(reject, ANSWER_LIMIT, late) });
      this._send({ ...request, id } as Request);
    });
  }

  close(trouble?: string): void {
    if (!this.isClosed) {
      this.isClosed = true;
      this._socket.destroy();
      const gone = new Error(`The kernel of '${this.record.name}' ended.`);
      this._asked.forEach(({ reject, timer }) => (clearTimeout(timer), reject(gone)));
      this._listener.onEnd(trouble);
    }
  }

  private _send(message: Sent): void {
    const body = Buffer.from(JSON.stringify(message));
    const head = Buffer.alloc(4);
    head.writeUInt32BE(body.length);
    this._socket.write(Buffer.concat([head, body]));
  }

  /** Take bytes, and the frames that are complete with them. */
  private _take(data: Buffer): void {
    this._parts.push(data);
    this._length += data.length;
    while (!this.isClosed && this._length >= this._needed) {
      const all = Buffer.concat(this._parts);
      this._parts = [all];
      let message: (Received & { attachments?: number[] }) | undefined;
      let sizes: number[] = [];
      const start = 4 + all.readUInt32BE();
      let end = start;
      try {
        if (all.length >= start) {
          message = JSON.parse(all.toString('utf8', 4, start), (_, value) => value ?? undefined);
          sizes = message!.attachments ?? [];
          end = sizes.reduce((sum, part) => sum + part, start);
        }
        if (start > MAX_HEADER || end > MAX_FRAME) {
          throw new RangeError('too long');
        }
      } catch {
        return this.close(NOT_UNDERSTOOD);
      }
      this._needed = end;
      if (message && all.length >= end) {
        let at = start;
        const attachments = sizes.map(part => all.subarray(at, (at += part)));
        this._parts = [all.subarray(end)];
        this._length = all.length - end;
        this._needed = 4;
        this._handle(message, attachments);
      }
    }
  }

  private _handle(message: Received, attachments: Buffer[]): void {
    switch (message.type) {
      case 'welcome':
        if (message.protocol !== PROTOCOL) {
          const versions = `version ${message.protocol} of the link's protocol, but this extension speaks version ${PROTOCOL}`;
          return this.close(
            `The kernel's mcp-notebook speaks ${versions}. Install the extension anew with \`mcp-notebook install vscode\`.`
          );
        }
        this._isWelcome = true;
        return this._send({ type: 'watch_notebook', frontend: this._frontend });
      case 'refused':
        return this.close(message.message);
      case 'notebook_state': {
        const { type: _, ...changes } = message;
        return this._listener.onChanges(changes);
      }
      case 'show_panel':
        return this._listener.onShow();
      case 'call_stopped':
      case 'panel_answer':
      case 'call_details': {
        const asked = this._asked.get(message.id);
        this._asked.delete(message.id);
        clearTimeout(asked?.timer);
        asked?.resolve([message, attachments]);
      }
    }
  }

  private readonly _socket: net.Socket;
  private _frontend: Frontend = '';
  private _isWelcome = false;
  private _last = 0;
  private readonly _asked = new Map<number, IAsked>();
  /** What has arrived of the next frame, and how many bytes of it have to be there. */
  private _parts: Buffer[] = [];
  private _length = 0;
  private _needed = 4;
}
