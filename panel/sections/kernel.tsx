/** The kernel of the notebook in front and how clients reach it. */
import * as React from 'react';

import { describeTrouble, stripBackticks } from '../format';
import { IPanelContext, ISectionProps } from '../hooks';
import { LOAD } from '../host';
import { INotebookState } from '../messages';
import { Copyable, Section, SmallButton } from './section';

/** Say in a word whether clients can call, and what there is to do if not. */
export function KernelState(
  props: IPanelContext & { notebook: INotebookState | undefined }
): JSX.Element {
  const { store, trans, actions, notebook } = props;
  const front = store.front;
  if (store.stream === 'missing') {
    return (
      <Status kind="off" word={trans.__('not available')}>
        {trans.__('mcp-notebook is not installed where this Jupyter server runs.')}
      </Status>
    );
  }
  if (store.stream === 'opening') {
    return <Status kind="wait" word={trans.__('connecting')} />;
  }
  if (store.stream === 'lost') {
    return (
      <Status kind="wait" word={trans.__('reconnecting')}>
        {trans.__('The Jupyter server does not answer. What is shown here may be old.')}{' '}
        <SmallButton label={trans.__('Try again')} onClick={() => store.reconnect()} />
      </Status>
    );
  }
  if (!front) {
    return <Status kind="off" word={trans.__('no notebook is open')} />;
  }
  if (notebook?.trouble) {
    return (
      <Status
        kind={notebook.trouble_kind === 'restarting' ? 'wait' : 'off'}
        word={describeTrouble(trans, notebook)}
        name={notebook.name}
      >
        {notebook.trouble}
      </Status>
    );
  }
  if (notebook) {
    return <Status kind="live" word={trans.__('live')} name={notebook.name} />;
  }
  if (['restarting', 'autorestarting', 'connecting'].includes(front.status)) {
    return <Status kind="wait" word={trans.__('the kernel is starting')} />;
  }
  if (!front.kernel || ['dead', 'terminating', 'unknown'].includes(front.status)) {
    return <Status kind="off" word={trans.__('gone: the notebook has no running kernel')} />;
  }
  // A kernel that starts gets later what it is sent now. If another program has restarted it,
  // JupyterLab takes it to be starting until it is sent something.
  const isStarting = front.status === 'starting';
  const lack = store.lacks.get(front.kernel);
  return (
    <Status
      kind={isStarting ? 'wait' : 'off'}
      word={isStarting ? trans.__('the kernel is starting') : trans.__('not loaded')}
    >
      {lack?.text ?? trans.__('This notebook offers no tools yet.')}{' '}
      <SmallButton
        label={lack?.line ? trans.__('Install it there') : trans.__('Load mcp_notebook')}
        title={lack?.line || LOAD}
        onClick={() => actions.load()}
      />
    </Status>
  );
}

function Status(props: {
  kind: 'live' | 'wait' | 'off';
  word: string;
  name?: string;
  children?: React.ReactNode;
}): JSX.Element {
  return (
    <div className="jp-mcp-status">
      <div>
        {props.name && <strong className="jp-mcp-name">{props.name}</strong>}
        <span className={`jp-mcp-word jp-mcp-${props.kind}`}>{props.word}</span>
      </div>
      {props.children && <div className="jp-mcp-explanation">{props.children}</div>}
    </div>
  );
}

export function ConnectionSection(props: ISectionProps): JSX.Element | null {
  const { store, trans, notebook } = props;
  const addresses = notebook.addresses.map(stripBackticks).filter(text => text.startsWith('http'));
  const own = store.host.server?.url ?? [];
  const all = [...new Set([own, addresses].flat())];
  if (all.length + notebook.problems.length === 0) {
    return null;
  }
  return (
    <Section title={trans.__('Connection')}>
      {all.map(address => (
        <Copyable
          key={address}
          text={address}
          host={store.host}
          label={trans.__('Copy the address')}
          copy={trans.__('Copy')}
          onCopied={() => store.setNote(trans.__('The address was copied.'))}
        />
      ))}
      {notebook.problems.map(problem => (
        <p className="jp-mcp-error" key={problem}>
          {problem.split('`').map((part, index) =>
            index % 2 ? <code key={index}>{part}</code> : part
          )}
        </p>
      ))}
    </Section>
  );
}
