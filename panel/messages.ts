/**
 * What the panel is told and takes: the shapes of `mcp_notebook/wire/messages.py`.
 *
 * All texts come from clients, tools and their arguments. They are shown as text, never as HTML.
 */

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
  /** How it differs from the notebook's lock: in a line, then change by change. */
  changes?: string[];
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

/** A cell that a client proposes. */
export interface IProposal {
  number: number;
  client: string;
  reason: string;
  kind: 'code' | 'markdown' | 'tool';
  source: string;
  digest: string;
  /** The cell below which it would stand; absent: at the end. */
  after?: string | null;
  /** The cell whose source it would replace. */
  replaces?: string | null;
  tool: string;
  /** What that cell held when the kernel ran it. */
  base?: string | null;
  warnings: string[];
  asked: number;
  /** 0: there is no limit. */
  ends: number;
  /** Taken: a page inserts it. */
  state: 'open' | 'taken';
}

/** A proposal that was accepted, and can be undone. */
export interface IAccepted {
  number: number;
  cell: string;
  client: string;
  tool: string;
  /** What the cell held before. */
  replaced?: string | null;
  /** The names that only it defined. */
  names: string[];
  ran: boolean;
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
  /** Whether clients may propose cells; absent if the kernel cannot tell. */
  proposes?: boolean | null;
  proposals?: IProposal[] | null;
  accepted?: IAccepted[] | null;
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
  | { action: 'remove'; tool: string }
  | { action: 'lock'; tool: string }
  | { action: 'propose'; on: boolean }
  | { action: 'take'; proposal: number; digest: string; run: boolean; source?: string }
  | {
      action: 'settle';
      proposal: number;
      outcome: 'inserted' | 'ran' | 'stale';
      cell?: string;
      /** What the cell held until then; absent for a new one. */
      replaced?: string;
      message?: string;
      outputs?: unknown[];
    }
  | { action: 'reject'; proposal: number; word: string }
  | { action: 'undo'; proposal: number };

/** What is new of a notebook; `counts` has new numbers of calls and errors, by the tools' names. */
export type Changes = Partial<INotebookState> & { counts?: { [name: string]: [number, number] } };

/** One message of the stream. */
export type Change =
  | { kernel: string; changes: Changes }
  /** It ended, or it runs on and the notebook unloaded mcp_notebook. */
  | { kernel: string; changes: null; unloaded?: boolean }
  | { kernel: string; show: true }
  | { ready: true; requirement: string };
