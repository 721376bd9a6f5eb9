/** The calls that wait or run, each with its clock, its progress and a stop button. */
import * as React from 'react';

import { formatClock } from '../format';
import { ISectionProps, useClock } from '../hooks';
import { StopIcon } from '../icons';
import { IOpenCall } from '../messages';
import { KindBadge, Section, SmallButton } from './section';

export function RunningSection(props: ISectionProps): JSX.Element {
  const { trans, notebook } = props;
  const now = useClock(notebook.open_calls.length > 0);
  return (
    <Section title={trans.__('Running calls')} count={notebook.open_calls.length}>
      {notebook.open_calls.length === 0 && (
        <p className="jp-mcp-empty">{trans.__('None is running.')}</p>
      )}
      <ul className="jp-mcp-list">
        {notebook.open_calls.map(call => (
          <RunningCall {...props} key={call.number} call={call} now={now} />
        ))}
      </ul>
    </Section>
  );
}

function RunningCall(props: ISectionProps & { call: IOpenCall; now: number }): JSX.Element {
  const { store, trans, kernel, call, now } = props;
  const doing = call.is_stopping
    ? trans.__('stopping')
    : call.waits_for
      ? trans.__('waiting for %1', call.waits_for)
      : trans.__('running');
  return (
    <li className="jp-mcp-call">
      <div className="jp-mcp-row">
        <code className="jp-mcp-main" title={call.call}>
          {call.call}
        </code>
        <KindBadge trans={trans} kind={call.kind} />
        <SmallButton
          kind="warn"
          label={trans.__('Stop %1', call.tool)}
          disabled={call.is_stopping}
          onClick={() => void store.act(kernel, { action: 'stop', call: call.number })}
        >
          <StopIcon />
        </SmallButton>
      </div>
      <div className="jp-mcp-row jp-mcp-small">
        <span className="jp-mcp-main">
          {call.client} · {doing}
        </span>
        <span className="jp-mcp-side jp-mcp-clock">
          {formatClock(now - (call.began ?? call.came))}
        </span>
      </div>
      <Progress call={call} label={trans.__('Progress of %1', call.tool)} />
    </li>
  );
}

function Progress({ call, label }: { call: IOpenCall; label: string }): JSX.Element | null {
  if (call.progress === undefined && !call.message) {
    return null;
  }
  const part =
    call.progress !== undefined && call.total
      ? Math.min(100, Math.round((100 * call.progress) / call.total))
      : undefined;
  return (
    <div className="jp-mcp-progress">
      {part !== undefined && (
        <div
          className="jp-mcp-bar"
          role="progressbar"
          aria-label={label}
          aria-valuenow={part}
          aria-valuemin={0}
          aria-valuemax={100}
        >
          <div style={{ width: `${part}%` }} />
        </div>
      )}
      <span className="jp-mcp-small" title={call.message}>
        {[part === undefined ? call.progress : `${part} %`, call.message]
          .filter(item => item !== undefined && item !== '')
          .join(' · ')}
      </span>
    </div>
  );
}
