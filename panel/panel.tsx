/** The side panel: the sections of the notebook in front, and those of all notebooks. */
import * as React from 'react';

import { IPanelContext, ISectionProps, useStore } from './hooks';
import { CallsSection } from './sections/calls';
import { ClientsSection } from './sections/clients';
import { ConnectSection } from './sections/connect';
import { ConnectionSection, KernelState } from './sections/kernel';
import { NotebooksSection } from './sections/notebooks';
import { EarlierCalls, RestartNotice } from './sections/restart';
import { ProposalSwitch, describeProposal } from './sections/proposals';
import { QuestionsSection } from './sections/questions';
import { RunningSection } from './sections/running';
import { ToolsSection } from './sections/tools';

export function Panel(context: IPanelContext): JSX.Element {
  const { store, trans } = context;
  useStore(store);
  const notebook = store.current;
  const spoken = store.questions.map(item => trans.__('May %1 run?', item.question.tool));
  spoken.push(...store.proposals.map(({ proposal }) => describeProposal(trans, proposal)));
  const running = notebook?.open_calls?.length ?? 0;
  if (running > 0) {
    spoken.push(trans._n('%1 running call', '%1 running calls', running));
  }
  return (
    <div
      className="jp-mcp-content"
      role="region"
      tabIndex={-1}
      aria-label={trans.__('Tools of the notebook')}
    >
      <KernelState {...context} notebook={notebook} />
      <RestartNotice {...context} />
      {/* Read out when it changes. */}
      <div className="jp-mcp-spoken" role="status" aria-live="polite">
        {spoken.join(' ')}
      </div>
      {store.stream === 'open' && (
        <ConnectSection {...context} isLit={!notebook?.clients?.length} />
      )}
      <div className="jp-mcp-note" role="status" aria-live="polite">
        {store.note}
      </div>
      {notebook && store.front && !notebook.trouble ? (
        <Sections
          {...context}
          key={`${store.front.kernel} ${notebook.kernel}`}
          notebook={notebook}
          kernel={store.front.kernel}
        />
      ) : (
        <EarlierCalls {...context} />
      )}
      <NotebooksSection {...context} />
    </div>
  );
}

function Sections(props: ISectionProps): JSX.Element {
  return (
    <>
      <QuestionsSection {...props} />
      <RunningSection {...props} />
      <ToolsSection {...props} />
      <ProposalSwitch {...props} />
      <CallsSection {...props} />
      <EarlierCalls {...props} />
      <ClientsSection {...props} />
      <ConnectionSection {...props} />
    </>
  );
}
