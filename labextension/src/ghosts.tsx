/**
 * Proposals in the notebook, where their cells would go, and the line below cells that were
 * proposed once. Both belong to the application and not to the notebook: they are never saved.
 */
import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { Cell, ICodeCellModel } from '@jupyterlab/cells';
import { CodeEditor, IEditorFactoryService } from '@jupyterlab/codeeditor';
import { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { CellList, INotebookTracker, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Signal } from '@lumino/signaling';
import * as React from 'react';

import { IPanelContext, useStore } from '../../panel/hooks';
import { IAccepted, INotebookState, IProposal } from '../../panel/messages';
import { IEditor, IOrigin, IPlace, IProposalHost } from '../../panel/proposals';
import { Proposal } from '../../panel/sections/proposals';
import { IPiece } from '../../panel/source';
import { LineWidget, attachBelow, removeFromCell } from './cells';

/** What colors sources, and lets the user edit them. */
export interface IEditing {
  factory: IEditorFactoryService;
  languages: IEditorLanguageRegistry;
}

/** The key of our entries in the metadata of cells. */
const KEY = 'mcp_notebook';
const MIME_TYPES = { code: 'text/x-ipython', tool: 'text/x-ipython', markdown: 'text/x-ipythongfm' };

/** Return what a cell's metadata, which may be anything, tell of a proposal. */
function readOrigin(cell: Cell): IOrigin | undefined {
  const entry = cell.model.getMetadata(KEY)?.proposed;
  return typeof entry?.client === 'string' && typeof entry.date === 'string' ? entry : undefined;
}

export class NotebookHost implements IProposalHost {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _editing: IEditing
  ) {}

  find({ replaces, after }: IProposal): IPlace {
    const cells = this._cells;
    const named = this._findCell(replaces ?? after ?? '');
    const cell = named ?? cells[cells.length - 1];
    return {
      cell: cell?.model.id ?? '',
      source: named && replaces ? named.model.sharedModel.getSource() : undefined,
      isGone: !named && Boolean(replaces ?? after)
    };
  }

  findOrigin({ number, kernel, digest }: IOrigin): string | undefined {
    return this._cells.find(cell => {
      const origin = readOrigin(cell);
      return (
        origin?.number === number && origin.kernel === kernel && origin.digest === digest
      );
    })?.model.id;
  }

  place(proposal: IProposal, place: IPlace, source: string, proposed: IOrigin): string {
    const model = this._panel.content.model!.sharedModel;
    const entry = { proposed: { ...proposed } };
    const index = this._cells.findIndex(cell => cell.model.id === place.cell);
    if (place.source === undefined) {
      const cell = model.insertCell(index + 1, {
        cell_type: proposal.kind === 'markdown' ? 'markdown' : 'code',
        source,
        metadata: { trusted: true, [KEY]: entry } // as what its user types
      });
      return cell.id;
    }
    const { sharedModel } = this._cells[index].model;
    sharedModel.transact(() => {
      sharedModel.setSource(source);
      const before = sharedModel.getMetadata(KEY) as object | undefined;
      sharedModel.setMetadata(KEY, { ...before, ...entry });
    });
    return place.cell;
  }

  async run(id: string): Promise<unknown[]> {
    const cell = this._findCell(id);
    if (!cell) {
      return [];
    }
    const { content, sessionContext } = this._panel;
    await NotebookActions.runCells(content, [cell], sessionContext);
    return (cell.model as ICodeCellModel).outputs?.toJSON() ?? [];
  }

  show(id: string): void {
    const index = this._cells.findIndex(cell => cell.model.id === id);
    this._panel.content.activeCellIndex = index;
    void this._panel.content.scrollToItem(index, 'end');
  }

  focus(): void {
    this._panel.content.activate();
  }

  async colour(source: string, kind: IProposal['kind']): Promise<IPiece[]> {
    const { languages } = this._editing;
    const element = document.createElement('div');
    await languages.highlight(source, languages.findByMIME(MIME_TYPES[kind]), element);
    const pieces = [...element.childNodes].map(node => ({
      text: node.textContent ?? '',
      style: node instanceof Element ? node.className : undefined
    }));
    const text = pieces.map(piece => piece.text).join('');
    // It may drop the end.
    return source.startsWith(text)
      ? [...pieces, { text: source.slice(text.length) }]
      : [{ text: source }];
  }

  edit(
    host: HTMLElement,
    source: string,
    kind: IProposal['kind'],
    onChange: (source: string) => void
  ): IEditor {
    const model = new CodeEditor.Model({ mimeType: MIME_TYPES[kind] });
    model.sharedModel.setSource(source);
    model.sharedModel.changed.connect(text => onChange(text.getSource()));
    return this._editing.factory.newInlineEditor({ host, model, config: { lineWrap: true } });
  }

  private get _cells(): readonly Cell[] {
    return this._panel.content.widgets;
  }

  private _findCell(id: string): Cell | undefined {
    return this._cells.find(cell => cell.model.id === id);
  }
}

/** Show the proposals of all notebooks, and keep them as the store has them. */
export function addGhosts(
  tracker: INotebookTracker,
  context: IPanelContext,
  editing: IEditing
): void {
  const follow = (panel: NotebookPanel) => new Ghosts(panel, context, editing);
  tracker.forEach(follow);
  tracker.widgetAdded.connect((_, panel) => void follow(panel));
}

class Ghosts {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _context: IPanelContext,
    editing: IEditing
  ) {
    this._host = new NotebookHost(_panel, editing);
    _context.store.changed.connect(this._updateIfChanged, this);
    _panel.sessionContext.kernelChanged.connect(this._update, this);
    _panel.content.modelChanged.connect(this._followCells, this);
    _panel.content.modelContentChanged.connect(this._update, this);
    this._followCells();
    _panel.disposed.connect(() => Signal.clearData(this));
  }

  private _followCells(): void {
    this._list?.changed.disconnect(this._update, this);
    this._list = this._panel.content.model?.cells;
    this._list?.changed.connect(this._update, this);
    this._update();
  }

  private get _kernel(): string {
    return this._panel.sessionContext.session?.kernel?.id ?? '';
  }

  private get _notebook(): INotebookState | undefined {
    return this._context.store.notebooks.get(this._kernel);
  }

  private _updateIfChanged(): void {
    const { proposals, accepted } = this._notebook ?? {};
    if (proposals !== this._proposals || accepted !== this._accepted) {
      this._update();
    }
  }

  private _update(): void {
    const { kernel: record, proposals, accepted } = this._notebook ?? {};
    this._proposals = proposals;
    this._accepted = accepted;
    const cells = this._panel.content.widgets;
    const open = new Set<string>();
    for (const proposal of proposals ?? []) {
      const cell = cells.find(({ model }) => model.id === this._host.find(proposal).cell);
      const key = `${record} ${proposal.number} ${cell?.model.id}`;
      open.add(key);
      if (cell && this._ghosts.get(key)?.isDisposed !== false) {
        const ghost = makeGhost({
          ...this._context,
          kernel: this._kernel,
          number: proposal.number,
          host: this._host
        });
        this._ghosts.set(key, ghost);
        attachBelow(cell, ghost);
      }
    }
    for (const [key, ghost] of this._ghosts) {
      if (!open.has(key)) {
        this._ghosts.delete(key);
        removeFromCell(ghost);
      }
    }
    cells.forEach(cell => this._showOrigin(cell, accepted ?? []));
  }

  private _showOrigin(cell: Cell, accepted: IAccepted[]): void {
    const { trans } = this._context;
    const origin = readOrigin(cell);
    let line = this._lines.get(cell);
    if (!origin) {
      removeFromCell(line);
      this._lines.delete(cell);
      return;
    }
    if (!line) {
      line = new LineWidget();
      this._lines.set(cell, line);
      attachBelow(cell, line);
    }
    const date = new Date(origin.date).toLocaleDateString(undefined, { dateStyle: 'long' });
    const undone =
      origin.kernel === this._notebook?.kernel
        ? accepted.find(({ number, cell: id }) => number === origin.number && id === cell.model.id)
        : undefined;
    line.set({
      text: origin.edited
        ? trans.__('Proposed by %1, %2, edited', origin.client, date)
        : trans.__('Proposed by %1, %2', origin.client, date),
      button: undone ? trans.__('Undo') : '',
      act: () => undone && void this._undo(cell, undone)
    });
  }

  /** Take back a cell, or what it held before, and what the kernel can take back. */
  private async _undo(cell: Cell, accepted: IAccepted): Promise<void> {
    const { store, trans } = this._context;
    const { number, tool, names, ran, digest } = accepted;
    const { sharedModel } = cell.model;
    const replaced = store.replaced.get(sharedModel.id) ?? accepted.replaced;
    const source = sharedModel.getSource();
    const parts = [
      typeof replaced === 'string'
        ? trans.__('The cell gets back what it held before.')
        : trans.__('The cell is deleted.')
    ];
    if (!readOrigin(cell)?.edited && (await isOther(source, digest))) {
      parts.push(trans.__('It was edited since: that is lost, too.'));
    }
    if (tool) {
      parts.push(trans.__('Clients lose the tool %1.', tool));
    }
    if (names.length > 0) {
      parts.push(trans.__('These names are deleted: %1.', names.join(', ')));
    }
    if (ran) {
      parts.push(
        trans.__('Whatever else it has changed stays as it is: files, other variables, other systems.')
      );
    }
    const answer = await showDialog({
      title: trans.__('Undo what %1 proposed?', accepted.client),
      body: parts.join(' '),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.warnButton({ label: trans.__('Undo') })
      ]
    });
    if (!answer.button.accept) {
      return;
    }
    if (!(await store.act(this._kernel, { action: 'undo', proposal: number }))) {
      void showErrorMessage(trans.__('It was not undone'), store.note);
      return;
    }
    store.replaced.delete(sharedModel.id);
    const model = this._panel.content.model?.sharedModel;
    const index = model?.cells.findIndex(({ id }) => id === sharedModel.id) ?? -1;
    if (typeof replaced === 'string') {
      sharedModel.transact(() => {
        sharedModel.setSource(replaced);
        const { proposed: _, ...rest } = (sharedModel.getMetadata(KEY) ?? {}) as IEntry;
        if (Object.keys(rest).length > 0) {
          sharedModel.setMetadata(KEY, rest);
        } else {
          sharedModel.deleteMetadata(KEY);
        }
      });
    } else if (index >= 0) {
      model?.deleteCell(index);
    }
  }

  private readonly _host: NotebookHost;
  private readonly _ghosts = new Map<string, ReactWidget>();
  private readonly _lines = new WeakMap<Cell, LineWidget>();
  private _list: CellList | undefined;
  private _proposals: INotebookState['proposals'];
  private _accepted: INotebookState['accepted'];
}

type IEntry = { proposed?: never; [key: string]: never | undefined };

/** Return whether a source has another digest, if this page can tell: over plain HTTP it cannot. */
async function isOther(source: string, digest: string): Promise<boolean> {
  const bytes = await window.crypto.subtle?.digest('SHA-256', new TextEncoder().encode(source));
  const hex = [...new Uint8Array(bytes ?? [])].map(byte => byte.toString(16).padStart(2, '0'));
  return Boolean(bytes) && hex.join('') !== digest;
}

/** Return a proposal as a widget that goes below a cell. */
function makeGhost(props: IGhostProps): ReactWidget {
  const ghost = ReactWidget.create(<Ghost {...props} />);
  ghost.addClass('jp-mcp-content');
  ghost.addClass('jp-mcp-ghost');
  // The notebook's own keys do not take what is typed here.
  ghost.node.dataset.lmSuppressShortcuts = 'true';
  return ghost;
}

interface IGhostProps extends IPanelContext {
  kernel: string;
  number: number;
  host: IProposalHost;
}

function Ghost(props: IGhostProps): JSX.Element | null {
  const { store, kernel, number, host } = props;
  useStore(store);
  const proposal = store.notebooks.get(kernel)?.proposals?.find(item => item.number === number);
  return proposal ? (
    <Proposal {...props} proposal={proposal} onAnswered={() => host.focus()} />
  ) : null;
}
