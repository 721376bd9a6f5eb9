/** What components have in common: the store, the language, and a clock. */
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { INotebookState, IRecordedCell } from './api';
import { PanelStore } from './store';

/** What the panel can do to the notebook in front. */
export interface INotebookActions {
  /** Whether a cell is in the notebook. */
  hasCell(id: string): boolean;
  /** Show a cell; returns whether it is there. */
  showCell(id: string): boolean;
  /** Insert a cell below the one that is active. */
  insertCell(source: string, options?: { run?: boolean }): void;
  /** Insert a cell with its outputs in the notebook of a kernel; returns whether it is open. */
  insertRecordedCell(kernel: string, cell: IRecordedCell): boolean;
  /** Run the cell that loads mcp_notebook; insert it if there is none. */
  load(): void;
  /** Bring the notebook of a kernel to the front. */
  openNotebook(kernel: string): void;
}

export interface IPanelContext {
  store: PanelStore;
  trans: TranslationBundle;
  actions: INotebookActions;
}

/** What sections get: the notebook that they show, and its kernel's id. */
export interface ISectionProps extends IPanelContext {
  kernel: string;
  notebook: INotebookState;
}

/** Render again after each change of the store. */
export function useStore(store: PanelStore): void {
  const [, render] = React.useState({});
  React.useEffect(() => {
    const update = () => render({});
    store.changed.connect(update);
    return () => void store.changed.disconnect(update);
  }, [store]);
}

/** Return the time in seconds, which goes on each second while something runs. */
export function useClock(isRunning: boolean): number {
  const [now, setNow] = React.useState(() => Date.now() / 1000);
  React.useEffect(() => {
    if (!isRunning) {
      return;
    }
    const tick = () => setNow(Date.now() / 1000);
    tick();
    const timer = window.setInterval(tick, 1000);
    return () => window.clearInterval(timer);
  }, [isRunning]);
  return now;
}
