/**
 * The line below a cell: which tools it declares, or that mcp_notebook is not loaded yet.
 *
 * It belongs to the application and not to the notebook, so it is never saved.
 */
import { Cell, ICodeCellModel } from '@jupyterlab/cells';
import {
  INotebookTracker,
  Notebook,
  NotebookActions,
  NotebookPanel
} from '@jupyterlab/notebook';
import { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { PanelLayout, Widget } from '@lumino/widgets';

import { countTools, describeEffect, describeKind } from '../../panel/format';
import { ITool } from '../../panel/messages';
import { ILack, PanelStore } from '../../panel/store';
import { loadExtension } from './front';
import { findLack } from './python';

/** What is said of our magics if the extension is not loaded, and of it if it is not installed. */
const NOT_LOADED =
  /UsageError: (Cell magic|Line magic function) `%%?mcp(_tools?|_view)?` not found|^No module named 'mcp_notebook'/;

/** What a line says, and what a click on it does. */
export interface ILine {
  text: string;
  button: string;
  act: () => void;
}

/** Show the lines of all notebooks, and keep them as the store has it. */
export function addCellLines(
  tracker: INotebookTracker,
  store: PanelStore,
  trans: TranslationBundle,
  openPanel: () => void
): void {
  followNotebooks(tracker, store, panel => {
    const lines = new CellLines(panel, store, trans, openPanel);
    return () => lines.update();
  });
}

/** Call what `start` returns for each notebook now, and after each change of it or of the store. */
export function followNotebooks(
  tracker: INotebookTracker,
  store: PanelStore,
  start: (panel: NotebookPanel) => () => void
): void {
  const follow = (panel: NotebookPanel) => {
    const { content, sessionContext } = panel;
    const update = start(panel);
    // Later: the widgets of cells follow the model.
    const updateLater = () => void Promise.resolve().then(() => panel.isDisposed || update());
    store.changed.connect(update, panel); // until the panel is disposed of
    sessionContext.kernelChanged.connect(update, panel);
    content.modelChanged.connect(updateLater, panel);
    content.modelContentChanged.connect(updateLater, panel);
    update();
  };
  tracker.forEach(follow);
  tracker.widgetAdded.connect((_, panel) => follow(panel));
}

class CellLines {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _store: PanelStore,
    private readonly _trans: TranslationBundle,
    private readonly _openPanel: () => void
  ) {
    NotebookActions.executed.connect(this._checkOutputs, this);
    _panel.disposed.connect(() => Signal.clearData(this));
  }

  private get _tools(): ITool[] | undefined {
    const kernel = this._panel.sessionContext.session?.kernel?.id ?? '';
    return this._store.notebooks.get(kernel)?.tools;
  }

  private get _lack(): ILack | undefined {
    return this._store.lacks.get(this._panel.sessionContext.session?.kernel?.id ?? '');
  }

  update(): void {
    const tools = this._tools;
    if (tools) {
      this._unloaded.clear();
    }
    const byCell = new Map<string, ITool[]>();
    for (const tool of tools ?? []) {
      if (tool.cell) {
        byCell.set(tool.cell, [...(byCell.get(tool.cell) ?? []), tool]);
      }
    }
    for (const cell of this._panel.content.widgets) {
      const declared = byCell.get(cell.model.id);
      if (declared) {
        this._show(cell, this._describeTools(declared));
      } else if (this._unloaded.has(cell.model.id)) {
        this._show(cell, this._explainLoading(cell));
      } else {
        removeFromCell(this._lines.get(cell));
        this._lines.delete(cell);
      }
    }
  }

  private _describeTools(tools: ITool[]): ILine {
    const trans = this._trans;
    const sum = (count: (tool: ITool) => number) =>
      tools.reduce((total, tool) => total + count(tool), 0);
    const parts = [
      tools.length > 1 ? countTools(trans, tools) : describeKind(trans, tools[0].kind)
    ];
    if (tools.some(tool => tool.kind !== 'skill')) {
      // To read a skill is not a call.
      parts.push(trans._n('%1 call', '%1 calls', sum(tool => tool.calls)));
    }
    const errors = sum(tool => tool.errors);
    if (errors > 0) {
      parts.push(trans._n('%1 error', '%1 errors', errors));
    }
    const effects = new Set(tools.map(tool => describeEffect(trans, tool)));
    if (effects.size === 1 && !effects.has('')) {
      parts.push(...effects);
    }
    const off = sum(tool => (tool.on ? 0 : 1));
    if (off > 0) {
      parts.push(trans._n('switched off', '%1 switched off', off));
    }
    return { text: '', button: parts.join(' · '), act: this._openPanel };
  }

  private _explainLoading(cell: Cell): ILine {
    return {
      text: this._lack?.text ?? this._trans.__('mcp_notebook is not loaded in this kernel.'),
      button: this._lack?.line
        ? this._trans.__('Install it there and run this cell')
        : this._trans.__('Load it and run this cell'),
      act: () => void loadExtension(this._panel, this._store, this._trans, cell)
    };
  }

  private _show(cell: Cell, line: ILine): void {
    let widget = this._lines.get(cell);
    if (!widget) {
      const made = (widget = new LineWidget());
      this._lines.set(cell, made);
      attachBelow(cell, made);
    }
    widget.set(line);
  }

  /** Look for IPython's error about a magic that mcp_notebook would have brought. */
  private _checkOutputs(_: unknown, args: { notebook: Notebook; cell: Cell }): void {
    const { notebook, cell } = args;
    if (notebook !== this._panel.content || cell.model.type !== 'code') {
      return;
    }
    const outputs = (cell.model as ICodeCellModel).outputs.toJSON();
    const isUnloaded =
      !this._tools &&
      outputs.some(({ text, evalue }) => NOT_LOADED.test(String(text ?? evalue ?? '')));
    if (isUnloaded) {
      void findLack(this._panel, this._store, this._trans);
    }
    if (isUnloaded !== this._unloaded.has(cell.model.id)) {
      if (isUnloaded) {
        this._unloaded.add(cell.model.id);
      } else {
        this._unloaded.delete(cell.model.id);
      }
      this.update();
    }
  }

  private _lines = new WeakMap<Cell, LineWidget>();
  /** Cells that need mcp_notebook, by their ids. */
  private _unloaded = new Set<string>();
}

/** Put a widget below the outputs of a cell, once the cell is there. */
export function attachBelow(cell: Cell, widget: Widget): void {
  cell.disposed.connect(() => widget.dispose());
  void cell.ready.then(() => {
    if (!widget.isDisposed && !cell.isDisposed) {
      const layout = cell.layout as PanelLayout;
      layout.insertWidget(layout.widgets.length - 1, widget); // before the footer
    }
  });
}

/** Dispose of such a widget. Its node is not in the cell's while a windowed notebook hides that. */
export function removeFromCell(widget: Widget | undefined): void {
  const place = widget?.parent?.node;
  if (widget && place && widget.node.parentNode !== place) {
    place.appendChild(widget.node);
  }
  widget?.dispose();
}

export class LineWidget extends Widget {
  constructor() {
    super();
    this.addClass('jp-mcp-line');
    // Enter and the space bar press the button; the notebook's own keys do not take them.
    this.node.dataset.lmSuppressShortcuts = 'true';
    this.node.setAttribute('role', 'status');
    this._text = this.node.appendChild(document.createElement('span'));
    this._button = this.node.appendChild(document.createElement('button'));
    this._button.onclick = () => this._line?.act();
  }

  set(line: ILine): void {
    if (line.text !== this._line?.text) {
      this._text.textContent = line.text;
    }
    if (line.button !== this._line?.button) {
      this._button.textContent = line.button;
    }
    this._line = line;
  }

  private _text: HTMLSpanElement;
  private _button: HTMLButtonElement;
  private _line: ILine | null = null;
}
