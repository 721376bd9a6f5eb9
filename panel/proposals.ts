/**
 * How the page answers proposals: it claims one at the kernel, puts the cell into the notebook and
 * tells what became of it. Of the application it needs an `IProposalHost` only.
 */
import { ITexts } from './host';
import { IProposal } from './messages';
import { IPiece } from './source';
import { PanelStore } from './store';

/** Where a proposal stands in a notebook as it is now. */
export interface IPlace {
  /** The cell at which it is shown; empty in an empty notebook. */
  cell: string;
  /** What that cell holds, if the proposal would replace it. */
  source?: string;
  /** Whether the cell that the proposal names is gone: it would stand at the end. */
  isGone: boolean;
}

/** What a cell's metadata tell of a proposal that was accepted. */
export interface IOrigin {
  client: string;
  date: string;
  digest: string;
  edited: boolean;
  number: number;
  /** The record of the kernel to which `number` belongs. */
  kernel: string;
}

/** An editor for the user's own version of a proposal. */
export interface IEditor {
  focus(): void;
  dispose(): void;
}

/** An open notebook, as an application has it. */
export interface IProposalHost {
  find(proposal: IProposal): IPlace;
  /** Return the cell with an origin, if there is one. */
  findOrigin(origin: IOrigin): string | undefined;
  /** Put a source where a proposal stands, as one step that can be undone; returns the cell. */
  place(proposal: IProposal, place: IPlace, source: string, origin: IOrigin): string;
  /** Run a cell, and return its outputs. */
  run(cell: string): Promise<unknown[]>;
  /** Show a cell. */
  show(cell: string): void;
  /** Give the focus to the notebook. */
  focus(): void;
  /** Return a source in pieces with the styles of its language. */
  colour(source: string, kind: IProposal['kind']): Promise<IPiece[]>;
  /** Put an editor into an element. */
  edit(
    element: HTMLElement,
    source: string,
    kind: IProposal['kind'],
    onChange: (source: string) => void
  ): IEditor;
}

/** What a user accepts: what was on her screen. */
export interface IAcceptance {
  proposal: IProposal;
  place: IPlace;
  source: string;
  run: boolean;
}

/** Return what has changed at the place of a proposal since it was drawn; empty if nothing has. */
function describeChange(trans: ITexts, drawn: IPlace, now: IPlace): string {
  if (now.isGone !== drawn.isGone) {
    return trans.__('The cell that the proposal is for was deleted.');
  }
  if (now.source !== drawn.source) {
    return trans.__('The cell that the proposal is for was edited.');
  }
  return '';
}

/** Put a proposal into the notebook, if the kernel and the notebook still have it as it was shown. */
export async function accept(
  { store, trans }: { store: PanelStore; trans: ITexts },
  kernel: string,
  host: IProposalHost,
  { proposal, place, source, run }: IAcceptance
): Promise<void> {
  const { number, digest, client } = proposal;
  const isEdited = source !== proposal.source;
  const record = store.notebooks.get(kernel)?.kernel ?? '';
  const settle = (outcome: 'inserted' | 'ran' | 'stale' | 'failed', more = {}) =>
    store.act(kernel, { action: 'settle', proposal: number, outcome, ...more });
  const early = describeChange(trans, place, host.find(proposal));
  if (early) {
    store.setNote(early);
    return;
  }
  const edited = isEdited ? { source } : {};
  if (!(await store.act(kernel, { action: 'take', proposal: number, digest, run, ...edited }))) {
    return;
  }
  const origin: IOrigin = {
    client,
    date: new Date().toISOString(),
    digest,
    edited: isEdited,
    number,
    kernel: record
  };
  // A page that took it before may have gone just after it had inserted the cell.
  let cell = host.findOrigin(origin);
  if (!cell) {
    // Meanwhile, the user or another one may have been there.
    const change = describeChange(trans, place, host.find(proposal));
    if (change) {
      await settle('stale', { message: change });
      store.setNote(change);
      return;
    }
    try {
      cell = host.place(proposal, place, source, origin);
    } catch (error) {
      await settle('failed', { message: String(error) });
      return;
    }
  }
  store.drafts.delete(digest);
  if (place.source !== undefined) {
    // As it was now, which is not always what the kernel has run.
    store.replaced.set(cell, place.source);
  }
  if (await settle('inserted', { cell })) {
    store.setNote(trans.__('The cell that %1 proposed is in the notebook.', client));
    if (run) {
      await settle('ran', { cell, outputs: await host.run(cell) });
      store.setNote(trans.__('The cell that %1 proposed has run.', client));
    }
  }
}
