/** Whether the Python of a kernel has mcp_notebook; if not, its user can have it installed there. */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import { NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { TranslationBundle } from '@jupyterlab/translation';

import { ILack, PanelStore } from '../../panel/store';

/** Changes nothing in the kernel's namespace. Quoted, the answer is safe in a `repr`. */
const ASK = `(lambda get: get("urllib.parse").parse.quote(get("json").dumps([
  get("sys").executable,
  get("sys").version_info[:3],
  *(get("importlib.util").util.find_spec(name) is not None for name in ("mcp_notebook", "pip")),
  get("shutil").which("uv") is not None,
])))(__import__)`;
const NEEDED = [3, 11];
/** Without what a shell or IPython would expand within double quotes. */
const PLAIN_PATH = /^[\p{L}\p{N} _.:/\\()+~-]+$/u;

/** Ask the kernel of a notebook whether it has mcp_notebook, and keep the answer in the store. */
export async function findLack(
  panel: NotebookPanel,
  store: PanelStore,
  trans: TranslationBundle
): Promise<ILack | undefined> {
  const kernel = panel.sessionContext.session?.kernel;
  if (!kernel) {
    return undefined;
  }
  const request = kernel.requestExecute({
    code: '',
    silent: true,
    store_history: false,
    stop_on_error: false,
    user_expressions: { python: ASK }
  });
  // Another language has no answer, nor has a kernel that is restarted meanwhile: what running the
  // cell brings is clear enough.
  const reply = await request.done.catch(() => undefined);
  const content = reply?.content as
    | { user_expressions?: { python?: { data?: { 'text/plain'?: string } } } }
    | undefined;
  const answer = content?.user_expressions?.python?.data?.['text/plain'];
  const lack = answer ? describeLack(answer.slice(1, -1), store.requirement, trans) : undefined;
  store.setLack(kernel.id, lack);
  return lack;
}

function describeLack(
  answer: string,
  requirement: string,
  trans: TranslationBundle
): ILack | undefined {
  const [path, version, isThere, hasPip, hasUv] = JSON.parse(decodeURIComponent(answer));
  if (isThere) {
    return undefined;
  }
  const python = `Python ${version.join('.')}${path ? ` (${path})` : ''}`;
  if (version[0] < NEEDED[0] || (version[0] === NEEDED[0] && version[1] < NEEDED[1])) {
    const text = trans.__(
      'mcp_notebook needs Python %1 or newer, and this kernel runs %2: choose another kernel.',
      NEEDED.join('.'),
      python
    );
    return { text, line: '' };
  }
  const text = trans.__('mcp_notebook is not installed in the environment of this kernel, %1.', python);
  if (!requirement || !path) {
    return { text: `${text} ${trans.__('Install mcp-notebook there.')}`, line: '' };
  }
  if (hasPip) {
    return { text, line: `%pip install ${requirement}` };
  }
  if (hasUv && PLAIN_PATH.test(path)) {
    return { text, line: `!uv pip install --python "${path}" ${requirement}` };
  }
  const step = trans.__('It has neither pip nor uv to install it: install pip there.');
  return { text: `${text} ${step}`, line: '' };
}

/**
 * Return whether a kernel has mcp_notebook, perhaps only now.
 *
 * If the user has been told that it does not, she is asked whether to install it.
 */
export async function ensureInstalled(
  panel: NotebookPanel,
  store: PanelStore,
  trans: TranslationBundle
): Promise<boolean> {
  const isTold = store.lacks.has(panel.sessionContext.session?.kernel?.id ?? '');
  const lack = await findLack(panel, store, trans);
  return !lack || (isTold && lack.line !== '' && (await install(panel, store, trans, lack)));
}

/** Install mcp_notebook for a kernel, if the user agrees; the cell that does it goes if it works. */
async function install(
  panel: NotebookPanel,
  store: PanelStore,
  trans: TranslationBundle,
  lack: ILack
): Promise<boolean> {
  const answer = await showDialog({
    title: trans.__('Install mcp_notebook for this kernel?'),
    body: trans.__('%1 A cell will run: %2', lack.text, lack.line),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Install') })
    ]
  });
  const model = panel.content.model?.sharedModel;
  if (!answer.button.accept || !model) {
    return false;
  }
  const cell = model.insertCell(0, { cell_type: 'code', source: lack.line, metadata: {} });
  await NotebookActions.runCells(panel.content, [panel.content.widgets[0]], panel.sessionContext);
  if (await findLack(panel, store, trans)) {
    return false;
  }
  const index = model.cells.indexOf(cell);
  if (index >= 0) {
    model.deleteCell(index);
  }
  return true;
}
