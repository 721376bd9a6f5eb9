/**
 * What the server extension tells and takes: the shapes of `mcp_notebook/wire/messages.py`,
 * and the routes of `mcp_notebook/jupyter/panel_handlers.py`.
 *
 * All texts come from clients, tools and their arguments. They are shown as text, never as HTML.
 */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';

export interface IClient {
  name: string;
  number: number;
  since: number;
}

/** What a declaration is. */
export type Kind = 'tool' | 'prompt' | 'resource' | 'skill';

export interface ITool {
  name: string;
  description: string;
  kind: Kind;
  listed_as?: string;
  on: boolean;
  effect: '' | 'read-only' | 'destructive';
  calls: number;
  errors: number;
  cell?: string;
  cell_deleted?: boolean;
}

export interface IOpenCall {
  number: number;
  tool: string;
  client: string;
  call: string;
  kind: Kind;
  came: number;
  began?: number;
  waits_for: string;
  is_stopping: boolean;
  progress?: number;
  total?: number;
  message: string;
}

export interface IQuestion {
  number: number;
  tool: string;
  text: string;
  asked: number;
  ends: number;
  session: 'hour' | 'connection';
}

export interface IEndedCall {
  number: number;
  tool: string;
  client: string;
  call: string;
  kind: Kind;
  came: number;
  state: string;
  seconds: number;
  is_error: boolean;
  result: string;
  has_picture: boolean;
}

/** Why a kernel cannot tell: it is older than the panel, of another version, or does not answer. */
export type TroubleKind = 'old' | 'version' | 'unreachable' | 'restarting';

/** What there is to see of one notebook; `trouble` alone if its kernel cannot tell. */
export interface INotebookState {
  name: string;
  trouble?: string;
  trouble_kind?: TroubleKind;
  kernel: string;
  addresses: string[];
  problems: string[];
  clients: IClient[];
  tools: ITool[];
  open_calls: IOpenCall[];
  questions: IQuestion[];
  ended_calls: IEndedCall[];
  number_of_calls: number;
}

export interface ICallDetails {
  source: string;
  /** Why `source` lacks an argument, which was not recorded. */
  gap: '' | 'secret' | 'large';
  arguments: string;
  result: string;
  is_kept: boolean;
  pictures: string[];
}

/** An MCP client; what follows `is_found` is told to browsers on the machine of the server. */
export interface IFoundClient {
  name: string;
  title: string;
  is_found: boolean;
  /** Its entry for mcp-notebook: that of this server, another, none, or the user has to add it. */
  state: 'connected' | 'other' | 'none' | 'paste';
  problem: string;
  /** The name by which it introduces itself to servers; empty if that is not known. */
  program: string;
  file: string;
  text: string;
  steps: string[];
}

export interface IMachineClients {
  place: 'local' | 'remote' | 'JupyterHub' | 'Binder';
  machine: string;
  clients: IFoundClient[];
  /** The entry for any other client; absent if the server is elsewhere. */
  lines?: string;
}

/** A code cell, as the files of notebooks have it. */
export interface IRecordedCell {
  source: string;
  metadata: { [key: string]: unknown };
  outputs: { output_type: string; [key: string]: unknown }[];
}

export type Decision = 'once' | 'session' | 'deny';

export type Action =
  | { action: 'stop'; call: number }
  | { action: 'answer'; question: number; decision: Decision }
  | { action: 'switch'; tool: string; on: boolean }
  | { action: 'remove'; tool: string };

/** What is new of a notebook; `counts` has new numbers of calls and errors, by the tools' names. */
export type Changes = Partial<INotebookState> & { counts?: { [name: string]: [number, number] } };

/** One message of the stream. */
export type Change =
  | { kernel: string; changes: Changes | null }
  | { kernel: string; show: true }
  | { ready: true; requirement: string };

/** The server, and the language of what is said about it. */
export interface IServer {
  settings: ServerConnection.ISettings;
  trans: TranslationBundle;
}

const BASE = 'mcp-notebook/api';

/** Do something in a notebook, and return a sentence about what became of it. */
export async function act(
  server: IServer,
  kernel: string,
  record: string | undefined,
  action: Action
): Promise<string> {
  const answer = await request<{ message: string }>(server, 'actions', {
    method: 'POST',
    body: JSON.stringify({ kernel, record, ...action })
  });
  return answer.message;
}

/** Return all that is known of a call. */
export function findCall(
  server: IServer,
  kernel: string,
  number: number
): Promise<ICallDetails> {
  return request<ICallDetails>(server, `calls/${encodeURIComponent(kernel)}/${number}`);
}

/** Return a call as a cell, with its result. */
export function findCell(
  server: IServer,
  kernel: string,
  number: number
): Promise<IRecordedCell> {
  return request<IRecordedCell>(server, `calls/${encodeURIComponent(kernel)}/${number}/cell`);
}

/** Return the MCP clients on the machine of the server. */
export function findClients(server: IServer): Promise<IMachineClients> {
  return request<IMachineClients>(server, 'clients');
}

/** Write a client's entry, and return what was done and what there is to do next. */
export async function connectClient(
  server: IServer,
  client: string,
  replace: boolean
): Promise<string> {
  const answer = await request<{ message: string }>(server, 'clients', {
    method: 'POST',
    body: JSON.stringify({ client, replace })
  });
  return answer.message;
}

/**
 * Return the address of a picture in a call's result, or of the thumbnail of the first one.
 *
 * Browsers keep pictures by their address: `record` is another one after each start of the kernel,
 * whose calls are counted from 1 again.
 */
export function pictureUrl(
  { settings }: IServer,
  kernel: string,
  record: string,
  number: number,
  index: number | 'thumbnail'
): string {
  const part = index === 'thumbnail' ? index : `pictures/${index}`;
  const path = `calls/${encodeURIComponent(kernel)}/${number}/${part}`;
  return URLExt.join(settings.baseUrl, BASE, path) + URLExt.objectToQueryString({ record });
}

/** Open the stream of changes. */
export function openChanges({ settings }: IServer): WebSocket {
  const url = URLExt.join(settings.wsUrl, BASE, 'changes');
  // A WebSocket has no headers of its own.
  const query: { [name: string]: string } = {};
  const xsrf = /(?:^|; *)_xsrf=([^;]*)/.exec(document.cookie);
  if (xsrf) {
    query._xsrf = xsrf[1];
  }
  if (settings.appendToken && settings.token) {
    query.token = settings.token;
  }
  return new settings.WebSocket(url + URLExt.objectToQueryString(query));
}

/** Return whether the server has the extension at all. */
export async function hasServerExtension({ settings }: IServer): Promise<boolean> {
  const url = URLExt.join(settings.baseUrl, BASE, 'state');
  const response = await ServerConnection.makeRequest(url, {}, settings);
  return response.status !== 404;
}

async function request<T>(server: IServer, path: string, init: RequestInit = {}): Promise<T> {
  const { settings, trans } = server;
  const url = URLExt.join(settings.baseUrl, BASE, path);
  let response: Response;
  try {
    response = await ServerConnection.makeRequest(url, init, settings);
  } catch {
    throw new Error(trans.__('The Jupyter server cannot be reached. Try again in a moment.'));
  }
  let body;
  try {
    body = await response.json();
  } catch {
    throw new Error(explainOtherAnswer(server, response.status));
  }
  if (!response.ok) {
    throw new Error(body.message ?? explainOtherAnswer(server, response.status));
  }
  return body;
}

/** Explain an answer that is not ours: the page of a proxy, or one to log in. */
function explainOtherAnswer({ trans }: IServer, status: number): string {
  return status >= 500
    ? trans.__('The Jupyter server, or a proxy before it, answered with error %1. Try again in a moment.', status)
    : trans.__('The Jupyter server did not answer as expected (HTTP %1). Reload the page: you may have to log in again.', status);
}
