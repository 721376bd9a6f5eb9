/** All that the panel, the status bar and the commands know: one store for each page. */
import { ISignal, Signal } from '@lumino/signaling';

import { IHost } from './host';
import {
  Action,
  Change,
  Changes,
  IEndedCall,
  INotebookState,
  IProposal,
  IQuestion,
  ITool
} from './messages';

/** Milliseconds until a lost stream is opened again, at first and at most. */
const RETRY = 500;
const LONGEST_RETRY = 30_000;
/** Milliseconds between the start of a kernel and the news that its last process is gone. */
const RESTART = 30_000;
/** Milliseconds until a lost stream is shown as lost: most are open again before. */
const NOTICE = 1000;

/** The stream: being opened at first, open, lost and to be opened again, or not on this server. */
export type Stream = 'opening' | 'open' | 'lost' | 'missing';

/** The notebook in front, as the application knows it. */
export interface IFront {
  /** The id of its kernel; empty if it has none. */
  kernel: string;
  /** JupyterLab's word for what the kernel does. */
  status: string;
}

/** A question, and the notebook that it is about. */
export interface IAsked {
  kernel: string;
  question: IQuestion;
}

/** Why a kernel cannot load mcp_notebook. */
export interface ILack {
  text: string;
  /** What a cell has to run to install it; empty if it cannot be installed. */
  line: string;
}

/** What a kernel's process had told before it was restarted. */
export interface IPast {
  tools: ITool[];
  calls: IEndedCall[];
  /** When the restart was seen, in seconds. */
  restarted: number;
}

/** Return what is known of a notebook after a change. */
export function merge(known: INotebookState | undefined, { counts, ...changes }: Changes): INotebookState {
  const merged = { ...known, ...changes } as INotebookState;
  if (counts && merged.tools) {
    merged.tools = merged.tools.map(tool => {
      const [calls, errors] = counts[tool.name] ?? [tool.calls, tool.errors];
      return { ...tool, calls, errors };
    });
  }
  return merged;
}

export class PanelStore {
  constructor(readonly host: IHost) {
    this._open();
  }

  /** By the ids of their kernels. */
  readonly notebooks = new Map<string, INotebookState>();

  stream: Stream = 'opening';

  front: IFront | null = null;

  /** What pip installs to get the server's mcp_notebook; empty if it is not plain enough for a cell. */
  requirement = '';

  /** What kernels lack that were asked to load mcp_notebook, by their ids. */
  readonly lacks = new Map<string, ILack>();

  /** The user's own versions of proposals, by their digests: a page draws a proposal more than once. */
  readonly drafts = new Map<string, string>();


  /** What became of the last thing that the user did here; also read out. */
  note = '';

  /** Emitted after each change of the above. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emitted with the id of a kernel whose notebook asks to open the panel. */
  get shown(): ISignal<this, string> {
    return this._shown;
  }

  /** The notebook in front, if its kernel has told anything. */
  get current(): INotebookState | undefined {
    return this.front ? this.notebooks.get(this.front.kernel) : undefined;
  }

  /** What was known of the notebook in front before its kernel was restarted, if it was. */
  get past(): IPast | undefined {
    return this._past.get(this.front?.kernel ?? '');
  }

  /** Return when a program was last seen in any notebook, in seconds; 0 if never. */
  findLastSeen(program: string): number {
    const times = [...this._seen];
    for (const { clients, ended_calls } of this.notebooks.values()) {
      ended_calls?.forEach(call => times.push([call.client, call.came]));
      clients?.forEach(client => times.push([client.name, Date.now() / 1000]));
    }
    return Math.max(0, ...times.map(([name, time]) => (name.startsWith(program) ? time : 0)));
  }

  /** The open questions of all notebooks, oldest first. */
  get questions(): IAsked[] {
    const asked: IAsked[] = [];
    this.notebooks.forEach((notebook, kernel) => {
      (notebook.questions ?? []).forEach(question => asked.push({ kernel, question }));
    });
    return asked.sort((a, b) => a.question.asked - b.question.asked);
  }

  /** The open proposals of all notebooks, with the ids of their kernels. */
  get proposals(): { kernel: string; proposal: IProposal }[] {
    return [...this.notebooks].flatMap(([kernel, { proposals }]) =>
      (proposals ?? []).map(proposal => ({ kernel, proposal }))
    );
  }

  setFront(front: IFront | null): void {
    if (JSON.stringify(front) !== JSON.stringify(this.front)) {
      if (front?.kernel !== this.front?.kernel) {
        this.note = '';
      }
      this.front = front;
      if (front && /start/.test(front.status)) {
        this._noteStart(front.kernel);
      }
      this._changed.emit();
    }
  }

  setLack(kernel: string, lack: ILack | undefined): void {
    if (lack) {
      this.lacks.set(kernel, lack);
    } else {
      this.lacks.delete(kernel);
    }
    this._changed.emit();
  }

  setDraft({ digest }: IProposal, draft: string): void {
    this.drafts.set(digest, draft);
    this._changed.emit();
  }

  setNote(note: string): void {
    this.note = note;
    this._changed.emit();
  }

  /** Stop the calls of the notebook in front. */
  stopCalls(): Promise<boolean[]> {
    const kernel = this.front?.kernel ?? '';
    const calls = this.current?.open_calls ?? [];
    return Promise.all(calls.map(({ number }) => this.act(kernel, { action: 'stop', call: number })));
  }

  /** Deny all calls that ask, in all notebooks. */
  denyCalls(): Promise<boolean[]> {
    return Promise.all(
      this.questions.map(({ kernel, question }) =>
        this.act(kernel, { action: 'answer', question: question.number, decision: 'deny' })
      )
    );
  }

  /** Do something in a notebook, and return whether it worked; what became of it is in `note`. */
  async act(kernel: string, action: Action): Promise<boolean> {
    try {
      // Numbers begin again when a kernel is restarted: the page says which start it shows.
      const record = this.notebooks.get(kernel)?.kernel;
      this.setNote(await this.host.act(kernel, record, action));
      return true;
    } catch (error) {
      this.setNote(error instanceof Error ? error.message : String(error));
      return false;
    }
  }

  /** Open the stream now, if it is lost. */
  reconnect(): void {
    if (this.stream === 'lost' || this.stream === 'missing') {
      clearTimeout(this._timer);
      this._open();
    }
  }

  private _open(): void {
    this._close?.();
    const seen = new Set<string>();
    this._close = this.host.openChanges(
      change => this._take(change, seen),
      () => this._lose()
    );
  }

  private _take(change: Change, seen: Set<string>): void {
    if ('ready' in change) {
      this.requirement = change.requirement;
      // What an earlier stream told of and this one does not is gone.
      for (const kernel of [...this.notebooks.keys()].filter(known => !seen.has(known))) {
        this.notebooks.delete(kernel);
      }
      clearTimeout(this._notice);
      this._notice = undefined;
      this._retry = RETRY;
      this.stream = 'open';
    } else if ('show' in change) {
      this._shown.emit(change.kernel);
      return;
    } else if (change.changes === null) {
      this._keepPast(change.kernel, change.unloaded);
      this.notebooks.delete(change.kernel);
      if (change.kernel === this.front?.kernel) {
        this.note = '';
      }
    } else {
      const known = seen.has(change.kernel) ? this.notebooks.get(change.kernel) : undefined;
      seen.add(change.kernel);
      if (change.changes.tools && !known?.tools) {
        // Another process has taken the place of the one before.
        if (change.changes.kernel !== this._gone.get(change.kernel)?.record) {
          this._noteStart(change.kernel);
        }
        // What ends from now on is not what a start before has ended.
        this._gone.delete(change.kernel);
        this._starts.delete(change.kernel);
      }
      known?.clients?.forEach(client => this._seen.set(client.name, Date.now() / 1000));
      this.notebooks.set(change.kernel, merge(known, change.changes));
    }
    this._changed.emit();
  }

  /** Keep what a kernel has told until it is restarted. */
  private _keepPast(kernel: string, isUnloaded = false): void {
    const { kernel: record, tools, ended_calls: calls } = this.notebooks.get(kernel) ?? {};
    const past = this._past.get(kernel);
    if (isUnloaded && past) {
      past.tools = []; // no cell brings them back
    } else if (!isUnloaded && tools && calls && tools.length + calls.length > 0) {
      this._gone.set(kernel, { tools, calls, record });
      if (Date.now() - (this._starts.get(kernel) ?? 0) < RESTART) {
        this._noteStart(kernel);
      }
    }
  }

  private _noteStart(kernel: string): void {
    this._starts.set(kernel, Date.now());
    const gone = this._gone.get(kernel);
    if (gone) {
      this._past.set(kernel, { ...gone, restarted: Date.now() / 1000 });
      this._gone.delete(kernel);
    }
  }

  private _lose(): void {
    const close = this._close;
    this._notice ||= setTimeout(() => this._setStream('lost'), NOTICE);
    this._timer = setTimeout(() => this._open(), this._retry);
    this._retry = Math.min(2 * this._retry, LONGEST_RETRY);
    // The answer may take long, or never come: nothing waits for it.
    void this.host.hasChanges?.().then(
      isThere => {
        if (!isThere && close === this._close) {
          clearTimeout(this._timer);
          clearTimeout(this._notice);
          this._notice = undefined;
          this._setStream('missing');
        }
      },
      () => undefined
    );
  }

  private _setStream(stream: Stream): void {
    this.stream = stream;
    this._changed.emit();
  }

  private _changed = new Signal<this, void>(this);
  private _shown = new Signal<this, string>(this);
  /** What kernels told until they went, by their ids. */
  private _gone = new Map<string, Omit<IPast, 'restarted'> & { record?: string }>();
  private _past = new Map<string, IPast>();
  /** When kernels were last seen to start, by their ids. */
  private _starts = new Map<string, number>();
  /** When programs were last seen to be connected, in seconds. */
  private _seen = new Map<string, number>();
  private _retry = RETRY;
  /** Opens the stream again. */
  private _timer?: ReturnType<typeof setTimeout>;
  /** Shows that the stream is lost; none while it is open. */
  private _notice?: ReturnType<typeof setTimeout>;
  private _close?: () => void;
}
