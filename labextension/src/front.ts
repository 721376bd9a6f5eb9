/** The notebook in front: which it is, what its kernel does, and what the panel does to it. */
import { JupyterFrontEnd } from '@jupyterlab/application';
import { INotebookTracker, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';

import { INotebookActions } from './hooks';
import { PanelStore } from './store';

/** Tell the store which notebook is in front, and what becomes of its kernel. */
export function followFront(tracker: INotebookTracker, store: PanelStore): void {
  let current: NotebookPanel | null = null;
  const update = () => {
    const session = current?.sessionContext;
    store.setFront(
      session
        ? {
            path: session.path,
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
  tracker: INotebookTracker | null
): INotebookActions {
  return {
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
      if (!panel) {
        return;
      }
      NotebookActions.insertBelow(panel.content);
      panel.content.activeCell?.model.sharedModel.setSource(source);
      void panel.content.scrollToItem(panel.content.activeCellIndex, 'smart');
      if (options.run) {
        void NotebookActions.run(panel.content, panel.sessionContext);
      }
    },
    openNotebook: kernel => {
      for (const session of app.serviceManager.sessions.running()) {
        if (session.kernel?.id === kernel && app.commands.hasCommand('docmanager:open')) {
          void app.commands.execute('docmanager:open', { path: session.path });
        }
      }
    }
  };
}
