/** The notebook's tools: a filter, their counts, a switch for each; a click leads to the cell. */
import * as React from 'react';

import { describeEffect } from '../format';
import { ISectionProps } from '../hooks';
import { ITool } from '../messages';
import { KindBadge, Section, SmallButton } from './section';

/** Tools from which on there is a filter. */
const MANY = 6;

export function ToolsSection(props: ISectionProps): JSX.Element {
  const { trans, notebook } = props;
  const [filter, setFilter] = React.useState('');
  const words = filter.toLowerCase();
  const tools = notebook.tools.filter(tool =>
    `${tool.name} ${tool.kind} ${tool.description}`.toLowerCase().includes(words)
  );
  return (
    <Section title={trans.__('Tools')} count={notebook.tools.length}>
      {notebook.tools.length >= MANY && (
        <input
          className="jp-mcp-filter jp-mod-styled"
          type="search"
          aria-label={trans.__('Filter tools')}
          placeholder={trans.__('Filter tools')}
          value={filter}
          onChange={event => setFilter(event.target.value)}
        />
      )}
      {notebook.tools.length === 0 && (
        <p className="jp-mcp-empty">
          {trans.__('None yet. Put %1 above a function and run its cell.', '%%mcp_tool')}
        </p>
      )}
      {tools.length === 0 && notebook.tools.length > 0 && (
        <p className="jp-mcp-empty">{trans.__('No tool has this in its name or description.')}</p>
      )}
      <ul className="jp-mcp-list jp-mcp-tools">
        {tools.map(tool => (
          <ToolRow {...props} key={tool.name} tool={tool} />
        ))}
      </ul>
    </Section>
  );
}

function ToolRow(props: ISectionProps & { tool: ITool }): JSX.Element {
  const { store, trans, actions, kernel, tool } = props;
  const show = () => {
    if (!tool.cell || !actions.showCell(tool.cell)) {
      store.setNote(trans.__('The cell of %1 is not in the notebook any more.', tool.name));
    }
  };
  // The kernel does not learn that a deletion was undone.
  const isOrphan = tool.cell_deleted && !actions.hasCell(tool.cell ?? '');
  const row = (
    <li className={tool.on ? 'jp-mcp-row' : 'jp-mcp-row jp-mcp-muted'}>
      <button
        className="jp-mcp-link jp-mcp-main"
        title={[tool.description, trans.__('Go to its cell')].filter(Boolean).join('\n')}
        onClick={show}
      >
        {tool.listed_as ? `${tool.name} (${tool.listed_as})` : tool.name}
      </button>
      <KindBadge {...props} kind={tool.kind} />
      {tool.effect && <span className="jp-mcp-side">{describeEffect(trans, tool)}</span>}
      {tool.calls > 0 && (
        <span className="jp-mcp-side">{trans._n('%1 call', '%1 calls', tool.calls)}</span>
      )}
      {tool.errors > 0 && (
        <span className="jp-mcp-side jp-mcp-error">
          {trans._n('%1 error', '%1 errors', tool.errors)}
        </span>
      )}
      <input
        type="checkbox"
        role="switch"
        checked={tool.on}
        aria-label={trans.__('Clients may call %1', tool.name)}
        title={trans.__('Clients may call %1', tool.name)}
        onChange={event =>
          void store.act(kernel, { action: 'switch', tool: tool.name, on: event.target.checked })
        }
      />
    </li>
  );
  return (
    <>
      {row}
      {isOrphan && (
        <li className="jp-mcp-row jp-mcp-small">
          <span className="jp-mcp-main">{trans.__('Its cell was deleted.')}</span>
          <SmallButton
            kind="warn"
            label={trans.__('Remove %1', tool.name)}
            title={trans.__('Remove %1; its function stays defined', tool.name)}
            onClick={() => void store.act(kernel, { action: 'remove', tool: tool.name })}
          >
            {trans.__('Remove')}
          </SmallButton>
        </li>
      )}
      {!!tool.changes?.length && <ChangesRow {...props} changes={tool.changes} />}
    </>
  );
}

/** What differs from the notebook's lock; a click locks the tool as it is. */
function ChangesRow(props: ISectionProps & { tool: ITool; changes: string[] }): JSX.Element {
  const { store, trans, kernel, tool, changes } = props;
  const [isOpen, setIsOpen] = React.useState(false);
  return (
    <li className="jp-mcp-row jp-mcp-small">
      <span className="jp-mcp-main" title={changes[0]}>
        {changes[0]}
      </span>
      <SmallButton
        label={trans.__('Show what changed in %1', tool.name)}
        expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
      >
        {isOpen ? trans.__('Hide') : trans.__('Show')}
      </SmallButton>
      <SmallButton
        label={trans.__('Lock %1 again, as it is now', tool.name)}
        onClick={() => void store.act(kernel, { action: 'lock', tool: tool.name })}
      >
        {trans.__('Lock again')}
      </SmallButton>
      {isOpen && (
        <ul className="jp-mcp-list">
          {changes.slice(1).map(change => (
            <li key={change}>{change}</li>
          ))}
        </ul>
      )}
    </li>
  );
}
