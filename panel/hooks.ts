/** What components have in common: the store, the language, and a clock. */
import * as React from 'react';

import { ITexts } from './host';
import { INotebookState, IRecordedCell } from './messages';
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
  /**
   * Run the cell that loads mcp_notebook; insert it if there is none.
   *
   * If the kernel's environment lacks it, the store says so; asked again, it can be installed.
   */
  load(): void;
  /** Run cells of the notebook in front and all above them, which they may need. */
  runDownTo(ids: string[]): void;
  /** Return the open proposals of the notebook in front, to be shown in the panel. */
  drawProposals(): JSX.Element[];
  /** Bring the notebook of a kernel to the front. */
  openNotebook(kernel: string): void;
}

export interface IPanelContext {
  store: PanelStore;
  trans: ITexts;
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

/** Milliseconds that an element must have been in its place before a click is meant for it. */
const SETTLED = 500;
/** Milliseconds between two looks at that. */
const LOOK = 100;

/**
 * Return whether an element has been in its place long enough, and a function that checks it now.
 *
 * The second click of a double click must not hit what has just moved under the mouse, or what has
 * just got other content.
 */
export function useSettled(
  element: React.RefObject<HTMLElement>,
  content = ''
): [boolean, () => boolean] {
  const [isSettled, setSettled] = React.useState(false);
  const last = React.useRef({ place: '', since: 0 });
  const check = React.useCallback(() => {
    const area = element.current?.getBoundingClientRect();
    const place = area && area.height > 0 ? `${area.left} ${area.top} ${content}` : '';
    const now = performance.now();
    if (place === '' || place !== last.current.place) {
      last.current = { place, since: now };
    }
    const settled = now - last.current.since >= SETTLED;
    setSettled(settled);
    return settled;
  }, [element, content]);
  // After each change of what is shown, and for changes of what is around it.
  React.useLayoutEffect(() => void check());
  React.useEffect(() => {
    const timer = window.setInterval(check, LOOK);
    return () => window.clearInterval(timer);
  }, [check]);
  return [isSettled, check];
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
