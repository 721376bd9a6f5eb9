/** The panel's page in VS Code: all that it knows and does goes through messages to `view.ts`. */
import * as React from 'react';
import { createRoot } from 'react-dom/client';

import { IHost } from '../../panel/host';
import { INotebookActions } from '../../panel/hooks';
import { Change } from '../../panel/messages';
import { Panel } from '../../panel/panel';
import { PanelStore } from '../../panel/store';
import { IFrontState } from './notebook';
import { TEXTS } from './texts';
import type { Answered, Asked, Told } from './view';

declare function acquireVsCodeApi(): { postMessage(message: Asked): void };

const UNSEEN =
  'This notebook offers no tools yet. If its kernel is on a remote Jupyter server, they are not seen ' +
  'here: `mcp-notebook connect` brings them to assistants.';

const code = acquireVsCodeApi();
const waiting = new Map<number, (answer: Answered) => void>();
let take: (change: Change) => void;
let state: IFrontState = { front: null, cells: [], open: [] };
let last = 0;

function ask<T>(method: Asked['method'], ...args: unknown[]): Promise<T> {
  const id = ++last;
  return new Promise<T>((resolve, reject) => {
    waiting.set(id, ({ result, error }) => (error === undefined ? resolve(result as T) : reject(new Error(error))));
    code.postMessage({ id, method, args });
  });
}

const host: IHost = {
  openChanges: onChange => {
    take = onChange;
    code.postMessage({ id: 0, method: 'open', args: [] });
    return () => undefined;
  },
  act: (...args) => ask('act', ...args),
  findCall: (...args) => ask('findCall', ...args),
  findCell: (...args) => ask('findCell', ...args),
  findPicture: (...args) => ask('findPicture', ...args),
  findClients: () => ask('findClients'),
  connectClient: (...args) => ask('connectClient', ...args),
  copy: text => void navigator.clipboard.writeText(text)
};
const store = new PanelStore(host);

/** Do something in a notebook; what went wrong is the panel's note. */
function run(method: Asked['method'], ...args: unknown[]): void {
  ask(method, ...args).catch((error: Error) => store.setNote(error.message));
}

const actions: INotebookActions = {
  hasCell: id => state.cells.includes(id),
  showCell: id => {
    run('showCell', id);
    return state.cells.includes(id);
  },
  insertCell: (source, options) => run('insertCell', source, options?.run ?? false),
  insertRecordedCell: (kernel, cell) => {
    run('insertRecordedCell', kernel, cell);
    return state.open.includes(kernel);
  },
  load: () => run('runDownTo', []),
  runDownTo: ids => run('runDownTo', ids),
  // A notebook here has no places for ghosts of cells: `%mcp propose` lists and accepts proposals.
  drawProposals: () => [],
  openNotebook: kernel => run('openNotebook', kernel)
};

window.addEventListener('message', ({ data }: MessageEvent<Told>) => {
  if ('change' in data) {
    take(data.change);
  } else if ('front' in data) {
    state = data;
    const { front } = state;
    if (front && !store.lacks.has(front.kernel)) {
      store.setLack(front.kernel, { text: UNSEEN, line: '' });
    }
    store.setFront(front);
    store.setNote(store.note); // other cells may be there
  } else {
    waiting.get(data.id)?.(data);
    waiting.delete(data.id);
  }
});

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(<Panel store={store} trans={TEXTS} actions={actions} />);
}
