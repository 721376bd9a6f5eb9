/** What a restart of the kernel took: its tools, until their cells run, and the calls before it. */
import * as React from 'react';

import { describeState, formatTime } from '../format';
import { IPanelContext } from '../hooks';
import { Section, SmallButton } from './section';

/** Say which tools are gone, and run their cells. */
export function RestartNotice({ store, trans, actions }: IPanelContext): JSX.Element | null {
  const past = store.past;
  const back = store.current?.tools ?? [];
  const gone = (past?.tools ?? []).filter(
    ({ name, cell }) =>
      // Its cell may be deleted by now, or declare it under another name.
      (!cell || actions.hasCell(cell)) &&
      !back.some(tool => tool.name === name || (cell && tool.cell === cell))
  );
  if (!past || gone.length === 0 || store.current?.trouble) {
    return null;
  }
  const cells = gone.flatMap(tool => tool.cell ?? []);
  return (
    <div className="jp-mcp-status">
      {trans._n(
        'Restarted at %2. %1 tool is gone until its cell runs.',
        'Restarted at %2. %1 tools are gone until their cells run.',
        gone.length,
        formatTime(past.restarted, 'short')
      )}
      {cells.length > 0 && (
        <div className="jp-mcp-buttons">
          <SmallButton
            kind="accept"
            label={trans.__('Run their cells and all above')}
            onClick={() => actions.runDownTo(cells)}
          />
        </div>
      )}
    </div>
  );
}

/** The last calls before the restart. Their kernel is gone, and with it all that is not here. */
export function EarlierCalls({ store, trans }: IPanelContext): JSX.Element | null {
  const past = store.past;
  if (!past || past.calls.length === 0) {
    return null;
  }
  return (
    <Section title={trans.__('Calls before the restart at %1', formatTime(past.restarted, 'short'))}>
      <ul className="jp-mcp-list jp-mcp-past">
        {past.calls.map(call => (
          <li className="jp-mcp-call" key={call.number}>
            <code className="jp-mcp-lines-3">{call.call}</code>
            <div className="jp-mcp-outcome jp-mcp-small">
              <span className="jp-mcp-side">{describeState(trans, call)}</span>
              <span className="jp-mcp-result">{call.result}</span>
            </div>
          </li>
        ))}
      </ul>
    </Section>
  );
}
