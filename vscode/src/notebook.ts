/** The notebook in front: which it is, its cells, and what the panel does to it. In the extension host. */
import * as vscode from 'vscode';

import { LOAD, LOADS } from '../../panel/host';
import { IRecordedCell } from '../../panel/messages';
import { IFront } from '../../panel/store';
import { normalize } from './kernels';

/** What the webview is told of the notebook in front, and of those that are open. */
export interface IFrontState {
  /** With its kernel's name in the panel. */
  front: IFront | null;
  /** The ids by which kernels know its cells. */
  cells: string[];
  open: string[];
}

/** What an inserted output may show. HTML and scripts would run in the notebook. */
const SHOWN = /^(text\/plain|image\/(png|jpeg|gif|webp))$/;

/** Return a notebook's kernel by its name in the panel. */
export function findKernel(notebook: vscode.NotebookDocument): string {
  return notebook.uri.scheme === 'file' ? normalize(notebook.uri.fsPath) : notebook.uri.toString();
}

/** Return the notebook of a kernel, if this window has it open. */
export function findNotebook(kernel: string): vscode.NotebookDocument | undefined {
  return listNotebooks().find(notebook => findKernel(notebook) === kernel);
}

function listNotebooks(): vscode.NotebookDocument[] {
  return vscode.workspace.notebookDocuments.filter(({ notebookType }) => notebookType === 'jupyter-notebook');
}

function findFront(): vscode.NotebookEditor | undefined {
  const editor = vscode.window.activeNotebookEditor;
  return editor?.notebook.notebookType === 'jupyter-notebook' ? editor : undefined;
}

export function readFront(): IFrontState {
  const notebook = findFront()?.notebook;
  return {
    front: notebook ? { kernel: findKernel(notebook), status: 'idle' } : null,
    cells: notebook?.getCells().flatMap(findIds) ?? [],
    open: listNotebooks().map(findKernel)
  };
}

/** Return the ids by which kernels know a cell: Microsoft's extension sends its address. */
function findIds(cell: vscode.NotebookCell): string[] {
  const id: unknown = cell.metadata.id ?? cell.metadata.metadata?.id;
  return [cell.document.uri.toString(), ...(typeof id === 'string' ? [id] : [])];
}

/** What the panel does to notebooks; each is named in the webview's messages. */
export const ACTIONS = {
  async showCell(id: string): Promise<void> {
    const editor = findFront();
    const cell = editor?.notebook.getCells().find(each => findIds(each).includes(id));
    if (editor && cell) {
      await select(editor.notebook, cell.index);
    }
  },

  async insertCell(source: string, run: boolean): Promise<void> {
    const editor = findFront();
    if (editor) {
      const index = await insertBelow(editor.notebook, makeCell(source));
      if (run) {
        await runCells(editor.notebook, index, index + 1);
      }
    }
  },

  async insertRecordedCell(kernel: string, recorded: IRecordedCell): Promise<void> {
    // Not the one in front, which may be another by now.
    const notebook = findNotebook(kernel);
    if (notebook) {
      const cell = makeCell(recorded.source);
      cell.outputs = recorded.outputs.map(convertOutput);
      await insertBelow(notebook, cell);
    }
  },

  /** Run the cell that loads mcp_notebook, which is inserted if there is none, and all down to these. */
  async runDownTo(ids: string[]): Promise<void> {
    const notebook = findFront()?.notebook;
    if (notebook) {
      const loads = await findLoading(notebook);
      const last = notebook.getCells().findLastIndex(cell => findIds(cell).some(id => ids.includes(id)));
      await runCells(notebook, loads, loads + 1);
      await runCells(notebook, 0, last + 1);
    }
  },

  async openNotebook(kernel: string): Promise<void> {
    const notebook = findNotebook(kernel) ?? (await vscode.workspace.openNotebookDocument(vscode.Uri.file(kernel)));
    await vscode.window.showNotebookDocument(notebook);
  }
};

function makeCell(source: string): vscode.NotebookCellData {
  return new vscode.NotebookCellData(vscode.NotebookCellKind.Code, source, 'python');
}

async function findLoading(notebook: vscode.NotebookDocument): Promise<number> {
  const found = notebook.getCells().findIndex(
    cell => cell.kind === vscode.NotebookCellKind.Code && LOADS.test(cell.document.getText())
  );
  if (found < 0) {
    await insert(notebook, 0, makeCell(LOAD));
  }
  return Math.max(found, 0);
}

async function insert(notebook: vscode.NotebookDocument, index: number, cell: vscode.NotebookCellData): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  edit.set(notebook.uri, [vscode.NotebookEdit.insertCells(index, [cell])]);
  await vscode.workspace.applyEdit(edit);
}

async function insertBelow(notebook: vscode.NotebookDocument, cell: vscode.NotebookCellData): Promise<number> {
  const editor = vscode.window.visibleNotebookEditors.find(each => each.notebook === notebook);
  const index = editor?.selection.end ?? notebook.cellCount;
  await insert(notebook, index, cell);
  await select(notebook, index);
  return index;
}

async function select(notebook: vscode.NotebookDocument, index: number): Promise<void> {
  const range = new vscode.NotebookRange(index, index + 1);
  const editor = await vscode.window.showNotebookDocument(notebook, { selections: [range] });
  editor.revealRange(range, vscode.NotebookEditorRevealType.InCenterIfOutsideViewport);
}

async function runCells(notebook: vscode.NotebookDocument, start: number, end: number): Promise<void> {
  if (end > start) {
    const ranges = [{ start, end }];
    await vscode.commands.executeCommand('notebook.cell.execute', { ranges, document: notebook.uri });
  }
}

/** Return what `%mcp record` would show as VS Code has it, without what could run anything. */
function convertOutput(output: IRecordedCell['outputs'][number]): vscode.NotebookCellOutput {
  const items = vscode.NotebookCellOutputItem;
  if (output.output_type === 'error') {
    return new vscode.NotebookCellOutput([
      items.error({ name: String(output.ename), message: String(output.evalue) })
    ]);
  }
  const data = Object.entries((output.data ?? {}) as Record<string, unknown>);
  return new vscode.NotebookCellOutput(
    data.filter(([mime]) => SHOWN.test(mime)).map(([mime, value]) =>
      mime === 'text/plain' ? items.text(String(value), mime) : new items(Buffer.from(String(value), 'base64'), mime)
    )
  );
}
