/** The notebook in front: which it is, what its kernel does, and what the panel does to it. */
import { JupyterFrontEnd } from '@jupyterlab/application';
import { Cell } from '@jupyterlab/cells';
import { IEditorFactoryService } from '@jupyterlab/codeeditor';
import type * as nbformat from '@jupyterlab/nbformat';
import {
  INotebookModel,
  INotebookTracker,
  Notebook,
  NotebookActions,
  NotebookPanel
} from '@jupyterlab/notebook';
import { TranslationBundle } from '@jupyterlab/translation';

import { INotebookActions } from '../../panel/hooks';
import { LOAD, LOADS } from '../../panel/host';
import { PanelStore } from '../../panel/store';
import { drawProposals } from './proposals';
import { ensureInstalled } from './python';

/** Tell the store which notebook is in front, and what becomes of its kernel. */
export function followFront(tracker: INotebookTracker, store: PanelStore): void {
  let current: NotebookPanel | null = null;
  const update = () => {
    const session = current?.sessionContext;
    store.setFront(
      session
        ? {
            kernel: session.session?.kernel?.id ?? '',
            status: session.kernelDisplayStatus
          }
        : null
    );
  };
  const follow = () => {
    if (tracker.currentWidget === current) {
      return;
    }
    if (current && !current.isDisposed) {
      current.sessionContext.statusChanged.disconnect(update);
      current.sessionContext.kernelChanged.disconnect(update);
      current.sessionContext.connectionStatusChanged.disconnect(update);
    }
    current = tracker.currentWidget;
    if (current) {
      current.sessionContext.statusChanged.connect(update);
      current.sessionContext.kernelChanged.connect(update);
      current.sessionContext.connectionStatusChanged.connect(update);
    }
    update();
  };
  tracker.currentChanged.connect(follow);
  follow();
}

export function makeActions(
  app: JupyterFrontEnd,
  tracker: INotebookTracker | null,
  store: PanelStore,
  trans: TranslationBundle,
  editors: IEditorFactoryService
): INotebookActions {
  const actions: INotebookActions = {
    drawProposals: () => {
      const panel = tracker?.currentWidget;
      return panel ? drawProposals({ store, trans, actions, panel, editors }) : [];
    },
    hasCell: id =>
      tracker?.currentWidget?.content.widgets.some(cell => cell.model.id === id) ?? false,
    showCell: id => {
      const panel = tracker?.currentWidget;
      const index = panel?.content.widgets.findIndex(cell => cell.model.id === id) ?? -1;
      if (!panel || index < 0) {
        return false;
      }
      app.shell.activateById(panel.id);
      panel.content.activeCellIndex = index;
      void panel.content.scrollToItem(index, 'center');
      return true;
    },
    insertCell: (source, options = {}) => {
      const panel = tracker?.currentWidget;
      if (!panel?.content.model) {
        return;
      }
      insertBelow(panel.content, {
        cell_type: 'code',
        source,
        metadata: { trusted: true } // as what its user types
      });
      if (options.run) {
        void NotebookActions.run(panel.content, panel.sessionContext);
      }
    },
    insertRecordedCell: (kernel, cell) => {
      // Not the one in front, which may be another by now.
      const notebook = tracker?.find(
        panel => panel.sessionContext.session?.kernel?.id === kernel
      )?.content;
      if (!notebook?.model) {
        return false;
      }
      insertBelow(notebook, {
        cell_type: 'code',
        source: cell.source,
        // Not trusted: what clients and tools have said is in its outputs.
        metadata: { ...cell.metadata, trusted: false },
        outputs: cell.outputs as nbformat.IOutput[]
      });
      return true;
    },
    load: () => {
      const panel = tracker?.currentWidget;
      if (panel) {
        void loadExtension(panel, store, trans);
      }
    },
    runDownTo: ids => {
      const panel = tracker?.currentWidget;
      if (panel) {
        const cells = panel.content.widgets;
        const last = Math.max(...ids.map(id => cells.findIndex(cell => cell.model.id === id)));
        void loadExtension(panel, store, trans, ...cells.slice(0, last + 1));
      }
    },
    openNotebook: kernel => {
      for (const session of app.serviceManager.sessions.running()) {
        const isNotebook = session.type === 'notebook' && session.kernel?.id === kernel;
        if (isNotebook && app.commands.hasCommand('docmanager:open')) {
          void app.commands.execute('docmanager:open', { path: session.path });
        }
      }
    }
  };
  return actions;
}

/**
 * Insert a cell below the active one, and make it the active one.
 *
 * `NotebookActions.insertBelow` would give it the type that is set for new cells.
 */
function insertBelow(
  notebook: Notebook,
  cell: Parameters<INotebookModel['sharedModel']['insertCell']>[1]
): void {
  const index = notebook.activeCellIndex + 1;
  notebook.model?.sharedModel.insertCell(index, cell);
  notebook.deselectAll();
  notebook.activeCellIndex = index;
  void notebook.scrollToItem(index, 'smart');
}


/**
 * Run the cell that loads mcp_notebook, and then others.
 *
 * If the notebook has no such cell, it becomes the first one.
 */
export async function loadExtension(
  panel: NotebookPanel,
  store: PanelStore,
  trans: TranslationBundle,
  ...then: Cell[]
): Promise<void> {
  if (!(await ensureInstalled(panel, store, trans))) {
    return;
  }
  const notebook = panel.content;
  const find = () =>
    notebook.widgets.find(
      cell => cell.model.type === 'code' && LOADS.test(cell.model.sharedModel.getSource())
    );
  if (!find()) {
    notebook.model?.sharedModel.insertCell(0, { cell_type: 'code', source: LOAD, metadata: {} });
  }
  const loads = find();
  const cells = loads && !then.includes(loads) ? [loads, ...then] : then;
  await NotebookActions.runCells(notebook, cells, panel.sessionContext);
}
