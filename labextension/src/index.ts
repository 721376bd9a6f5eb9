/** The plugin: puts the panel beside the notebook, its item into the status bar, and its commands. */
import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, TranslationBundle, nullTranslator } from '@jupyterlab/translation';
import { ToolbarButton } from '@jupyterlab/ui-components';

import { IPanelContext } from '../../panel/hooks';
import { describeProposal } from '../../panel/sections/proposals';
import { PanelStore } from '../../panel/store';
import { JupyterHost } from './api';
import { addCellLines } from './cells';
import { followFront, makeActions } from './front';
import { addGhosts } from './ghosts';
import { SidePanel, panelIcon } from './panel';
import { StatusItem } from './status';

const OPEN = 'mcp-notebook:open-panel';
const STOP = 'mcp-notebook:stop-calls';
const DENY = 'mcp-notebook:deny-calls';
/** The application whose sidebars have no icons. */
const NOTEBOOK = 'Jupyter Notebook';
/** Among the widgets of the right sidebar: after the property inspector and the debugger. */
const RANK = 600;

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'mcp-notebook:panel',
  description: 'Shows the tools of notebooks and the calls of their clients.',
  autoStart: true,
  requires: [IEditorServices],
  optional: [INotebookTracker, ITranslator, ICommandPalette, ILayoutRestorer, IStatusBar],
  activate: (
    app: JupyterFrontEnd,
    { factoryService }: IEditorServices,
    tracker: INotebookTracker | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    statusBar: IStatusBar | null
  ) => {
    const trans = (translator ?? nullTranslator).load('mcp_notebook');
    const store = new PanelStore(new JupyterHost(app.serviceManager.serverSettings, trans));
    const actions = makeActions(app, tracker, store, trans, factoryService);
    const context: IPanelContext = { store, trans, actions };
    if (tracker) {
      followFront(tracker, store);
    }
    const panel = new SidePanel(context);
    app.shell.add(panel, 'right', { rank: RANK });
    restorer?.add(panel, panel.id);
    statusBar?.registerStatusItem('mcp-notebook:status', {
      item: new StatusItem(context, () => void app.commands.execute(OPEN)),
      align: 'left',
      rank: 10
    });
    addCommands(app, store, trans, panel);
    for (const command of [OPEN, STOP, DENY]) {
      palette?.addItem({ command, category: trans.__('Notebook tools (MCP)') });
    }
    notifyOfQuestions(app, context, panel);
    // Without the focus: nobody has asked for it here.
    const open = () => app.shell.activateById(panel.id);
    store.shown.connect((_, kernel) => {
      if (kernel === store.front?.kernel) {
        open();
      }
    });
    if (tracker) {
      if (app.name === NOTEBOOK) {
        addToolbarButton(app, trans);
      }
      addCellLines(tracker, store, trans, () => void app.commands.execute(OPEN));
      addGhosts(tracker, context, factoryService);
      openForNotebooks(app, tracker, open);
    }
  }
};

function addCommands(
  app: JupyterFrontEnd,
  store: PanelStore,
  trans: TranslationBundle,
  panel: SidePanel
): void {
  app.commands.addCommand(OPEN, {
    label: trans.__('Show the Tools of the Notebook'),
    execute: () => {
      app.shell.activateById(panel.id);
      // Later: the palette still puts the focus back to where it was.
      window.setTimeout(() => panel.focus());
    }
  });
  app.commands.addCommand(STOP, {
    label: trans.__('Stop the Running Calls of the Notebook'),
    isEnabled: () => (store.current?.open_calls ?? []).length > 0,
    execute: () => store.stopCalls()
  });
  app.commands.addCommand(DENY, {
    label: trans.__('Deny All Calls That Ask'),
    isEnabled: () => store.questions.length > 0,
    execute: () => store.denyCalls()
  });
  store.changed.connect(() => {
    app.commands.notifyCommandChanged(STOP);
    app.commands.notifyCommandChanged(DENY);
  });
}

/** Put a button that opens the panel into the toolbars of notebooks. */
function addToolbarButton(app: JupyterFrontEnd, trans: TranslationBundle): void {
  app.docRegistry.addWidgetExtension('Notebook', {
    createNew: (panel: NotebookPanel) => {
      const button = new ToolbarButton({
        icon: panelIcon,
        tooltip: trans.__('Show the tools of the notebook'),
        onClick: () => void app.commands.execute(OPEN)
      });
      panel.toolbar.insertBefore('spacer', 'mcp-notebook', button);
      return button;
    }
  });
}

/** Open the panel beside a notebook whose metadata ask for that: of a demo, or on Binder. */
function openForNotebooks(
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  open: () => void
): void {
  const check = async (panel: NotebookPanel) => {
    await Promise.all([app.restored, panel.context.ready]);
    if (panel.content.model?.getMetadata('mcp_notebook')?.opens_panel === true) {
      open();
    }
  };
  tracker.forEach(panel => void check(panel));
  tracker.widgetAdded.connect((_, panel) => void check(panel));
}

/** Tell of questions and proposals that the user does not see; take that back when they are answered. */
function notifyOfQuestions(
  app: JupyterFrontEnd,
  { store, trans, actions }: IPanelContext,
  panel: SidePanel
): void {
  const shown = new Map<string, string>();
  store.changed.connect(() => {
    const name = (kernel: string) => store.notebooks.get(kernel)?.name ?? '';
    const open = [
      ...store.questions.map(({ kernel, question }) => ({
        kernel,
        key: `${kernel}:${question.number}`,
        text: trans.__('%1: may %2 run?', name(kernel), question.tool)
      })),
      ...store.proposals.map(({ kernel, proposal }) => ({
        kernel,
        key: `${kernel}:${proposal.digest}:${proposal.number}`,
        text: trans.__('%1: %2', name(kernel), describeProposal(trans, proposal))
      }))
    ];
    for (const [key, id] of shown) {
      if (!open.some(item => item.key === key)) {
        shown.delete(key);
        Notification.dismiss(id);
      }
    }
    for (const { kernel, key, text } of open) {
      const isSeen = panel.isVisible && !document.hidden && kernel === store.front?.kernel;
      if (shown.has(key) || isSeen) {
        continue;
      }
      const show = () => {
        if (kernel !== store.front?.kernel) {
          actions.openNotebook(kernel);
        }
        void app.commands.execute(OPEN);
      };
      shown.set(
        key,
        Notification.warning(text, {
          autoClose: false,
          actions: [{ label: trans.__('Show'), callback: show }]
        })
      );
    }
  });
}

export default plugin;
