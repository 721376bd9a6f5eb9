/** The panel's page in VS Code: all that it knows and does goes through messages to `view.ts`. */
import * as React from 'react';
import { createRoot } from 'react-dom/client';

import { IHost, IStream } from '../../panel/host';
import { INotebookActions } from '../../panel/hooks';
import { Panel } from '../../panel/panel';
import { PanelStore } from '../../panel/store';
import { IFrontState } from './notebook';
import { TEXTS } from './texts';
import type { Asked, Told } from './view';

declare function acquireVsCodeApi(): { postMessage(message: Asked | { id: 0; method: 'open'; args: [] }): void };

const UNSEEN =
  'This notebook offers no tools yet. If its kernel is on a remote Jupyter server, they are not seen ' +
  'here: `mcp-notebook connect` brings them to assistants.';

const code = acquireVsCodeApi();
const waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
let stream: IStream | null = null;
let front: IFrontState = { kernel: null, cells: [], open: [] };
let last = 0;

function ask<T>(method: Asked['method'], ...args: unknown[]): Promise<T> {
  const id = ++last;
  return new Promise<T>((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    code.postMessage({ id, method, args });
  });
}

const host: IHost = {
  openChanges: () => {
    stream = { onmessage: null, onclose: null, close: () => undefined };
    code.postMessage({ id: 0, method: 'open', args: [] });
    return stream;
  },
  hasChanges: () => Promise.resolve(true),
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
  hasCell: id => front.cells.includes(id),
  showCell: id => {
    run('showCell', id);
    return front.cells.includes(id);
  },
  insertCell: (source, options) => run('insertCell', source, options?.run ?? false),
  insertRecordedCell: (kernel, cell) => {
    run('insertRecordedCell', kernel, cell);
    return front.open.includes(kernel);
  },
  load: () => run('load'),
  runDownTo: ids => run('runDownTo', ids),
  // A notebook here has no places for ghosts of cells: `%mcp propose` lists and accepts proposals.
  drawProposals: () => [],
  openNotebook: kernel => run('openNotebook', kernel)
};

window.addEventListener('message', ({ data }: MessageEvent<Told>) => {
  if ('change' in data) {
    stream?.onmessage?.call(stream as WebSocket, new MessageEvent('message', { data: data.change }));
  } else if ('front' in data) {
    front = data.front;
    const { kernel } = front;
    if (kernel !== null && !store.lacks.has(kernel)) {
      store.setLack(kernel, { text: UNSEEN, line: '' });
    }
    store.setFront(kernel === null ? null : { kernel, status: data.status });
    store.setNote(store.note); // other cells may be there
  } else {
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error === undefined) {
      asked?.resolve(data.result as never);
    } else {
      asked?.reject(new Error(data.error));
    }
  }
});

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(<Panel store={store} trans={TEXTS} actions={actions} />);
}
