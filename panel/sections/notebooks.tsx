/** All notebooks of the server that have tools, so that calls into others are seen, too. */
import * as React from 'react';

import { countTools, describeTrouble } from '../format';
import { IPanelContext } from '../hooks';
import { Section } from './section';

export function NotebooksSection({ store, trans, actions }: IPanelContext): JSX.Element {
  const notebooks = [...store.notebooks.entries()];
  return (
    <Section title={trans.__('All notebooks')} count={notebooks.length}>
      {notebooks.length === 0 && (
        <p className="jp-mcp-empty">{trans.__('No notebook of this server has tools.')}</p>
      )}
      <ul className="jp-mcp-list">
        {notebooks.map(([kernel, notebook]) => (
          <li className="jp-mcp-row jp-mcp-wrap" key={kernel}>
            <button
              className="jp-mcp-link jp-mcp-main"
              aria-current={kernel === store.front?.kernel}
              onClick={() => actions.openNotebook(kernel)}
            >
              {notebook.name}
            </button>
            {(notebook.questions ?? []).length > 0 && (
              <span className="jp-mcp-side jp-mcp-asks">
                {trans._n('%1 question', '%1 questions', notebook.questions.length)}
              </span>
            )}
            {(notebook.open_calls ?? []).length > 0 && (
              <span className="jp-mcp-side">
                {trans._n('%1 running call', '%1 running calls', notebook.open_calls.length)}
              </span>
            )}
            <span className="jp-mcp-side">
              {notebook.trouble
                ? describeTrouble(trans, notebook)
                : countTools(trans, notebook.tools ?? [])}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
