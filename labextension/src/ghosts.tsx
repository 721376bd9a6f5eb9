/**
 * What stands below cells of proposals: those that would go there, and the line of one that was
 * proposed once. Both belong to the application and not to the notebook: they are never saved.
 */
import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { Cell } from '@jupyterlab/cells';
import { IEditorFactoryService } from '@jupyterlab/codeeditor';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { IPanelContext } from '../../panel/hooks';
import { IAccepted } from '../../panel/messages';
import { attachBelow, followNotebooks, removeFromCell } from './cells';
import {
  IProposalContext,
  KEY,
  drawProposals,
  findNotebook,
  findPlace,
  readOrigin
} from './proposals';

/** Show the proposals of all notebooks, and keep them as the store has them. */
export function addGhosts(
  tracker: INotebookTracker,
  context: IPanelContext,
  editors: IEditorFactoryService
): void {
  followNotebooks(tracker, context.store, panel => {
    const props = { ...context, panel, editors };
    const ghosts = new WeakMap<Cell, Ghosts>();
    return () => {
      const proposals = findNotebook(props)[1]?.proposals ?? [];
      const places = new Set(proposals.map(proposal => findPlace(panel, proposal).cell));
      for (const cell of panel.content.widgets) {
        let ghost = ghosts.get(cell);
        if (!places.has(cell) && !readOrigin(cell)) {
          removeFromCell(ghost);
          ghosts.delete(cell);
        } else if (ghost) {
          ghost.update();
        } else {
          ghost = new Ghosts(props, cell);
          ghosts.set(cell, ghost);
          attachBelow(cell, ghost);
        }
      }
    };
  });
}

class Ghosts extends ReactWidget {
  constructor(
    private readonly _context: IProposalContext,
    private readonly _cell: Cell
  ) {
    super();
    this.addClass('jp-mcp-content');
    this.addClass('jp-mcp-ghost');
    // The notebook's own keys do not take what is typed here.
    this.node.dataset.lmSuppressShortcuts = 'true';
  }

  protected render(): JSX.Element {
    return (
      <>
        {drawProposals(this._context, this._cell)}
        {this._drawOrigin()}
      </>
    );
  }

  private _drawOrigin(): JSX.Element | null {
    const { trans } = this._context;
    const origin = readOrigin(this._cell);
    if (!origin) {
      return null;
    }
    const notebook = findNotebook(this._context)[1];
    const accepted = notebook?.accepted?.find(
      ({ number, cell }) =>
        number === origin.number &&
        cell === this._cell.model.id &&
        notebook.kernel === origin.kernel
    );
    const date = new Date(origin.date).toLocaleDateString(undefined, { dateStyle: 'long' });
    return (
      <div className="jp-mcp-line" role="status">
        <span>
          {origin.edited
            ? trans.__('Proposed by %1, %2, edited', origin.client, date)
            : trans.__('Proposed by %1, %2', origin.client, date)}
        </span>
        {accepted && (
          <button onClick={() => void undo(this._context, this._cell, accepted)}>
            {trans.__('Undo')}
          </button>
        )}
      </div>
    );
  }
}

/** Take back a cell, or what it held before, and what the kernel can take back. */
async function undo(context: IProposalContext, cell: Cell, accepted: IAccepted): Promise<void> {
  const { store, trans, panel } = context;
  const { number, client, tool, names, ran, replaced } = accepted;
  const { sharedModel } = cell.model;
  const parts = [
    typeof replaced === 'string'
      ? trans.__('The cell gets back what it held before. What was edited in it since is lost.')
      : trans.__('The cell is deleted, with what was edited in it since.'),
    tool && trans.__('Clients lose the tool %1.', tool),
    names.length > 0 && trans.__('These names are deleted: %1.', names.join(', ')),
    ran &&
      trans.__('What else it has changed stays as it is: files, other variables, other systems.')
  ];
  const answer = await showDialog({
    title: trans.__('Undo what %1 proposed?', client),
    body: parts.filter(Boolean).join(' '),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.warnButton({ label: trans.__('Undo') })
    ]
  });
  if (!answer.button.accept) {
    return;
  }
  if (!(await store.act(findNotebook(context)[0], { action: 'undo', proposal: number }))) {
    void showErrorMessage(trans.__('It was not undone'), store.note);
    return;
  }
  const index = panel.content.widgets.indexOf(cell);
  if (typeof replaced === 'string') {
    sharedModel.transact(() => {
      sharedModel.setSource(replaced);
      sharedModel.deleteMetadata(KEY);
    });
  } else if (index >= 0) {
    panel.content.model?.sharedModel.deleteCell(index);
  }
}
