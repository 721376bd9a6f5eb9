/** What is said of proposed cells wherever a panel is, and the switch for them. */
import * as React from 'react';

import { ITexts } from '../host';
import { ISectionProps } from '../hooks';
import { IProposal } from '../messages';

/** Return who proposes what. */
export function describeProposal(trans: ITexts, proposal: IProposal): string {
  const { client, kind, tool, replaces } = proposal;
  if (replaces) {
    return trans.__('%1 proposes a new version of %2', client, tool);
  }
  const texts = {
    code: trans.__('%1 proposes a cell', client),
    markdown: trans.__('%1 proposes a text', client),
    tool: trans.__('%1 proposes a tool', client)
  };
  return texts[kind];
}

/** Whether clients may propose cells, and what they get with that. */
export function ProposalSwitch({ store, trans, kernel, notebook }: ISectionProps): JSX.Element | null {
  const id = React.useId();
  if (typeof notebook.proposes !== 'boolean') {
    return null;
  }
  return (
    <div className="jp-mcp-proposes">
      <label className="jp-mcp-row">
        <span className="jp-mcp-main">{trans.__('Clients may propose cells')}</span>
        <input
          type="checkbox"
          role="switch"
          checked={notebook.proposes}
          aria-describedby={id}
          onChange={event =>
            void store.act(kernel, { action: 'propose', on: event.target.checked })
          }
        />
      </label>
      <div className="jp-mcp-small" id={id}>
        {trans.__(
          'You decide on each of them. Clients then also read the sources of all cells, and the names and types of variables.'
        )}
      </div>
    </div>
  );
}
