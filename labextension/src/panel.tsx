/** The side panel: the sections of the notebook in front, and those of all notebooks. */
import { LabIcon, ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { IPanelContext, ISectionProps, useStore } from './hooks';
import { CallsSection } from './sections/calls';
import { ClientsSection } from './sections/clients';
import { ConnectSection } from './sections/connect';
import { ConnectionSection, KernelState } from './sections/kernel';
import { NotebooksSection } from './sections/notebooks';
import { EarlierCalls, RestartNotice } from './sections/restart';
import { QuestionsSection } from './sections/questions';
import { RunningSection } from './sections/running';
import { ToolsSection } from './sections/tools';

export const panelIcon = new LabIcon({
  name: 'mcp-notebook:panel',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <path class="jp-icon3 jp-icon-selectable" fill="#616161" d="M5 3h9l5 5v4h-2V9h-4V5H7v14h5v2H5z"/>
  <path class="jp-icon3 jp-icon-selectable" fill="#616161" d="M18 13l1.2 2.8L22 17l-2.8 1.2L18 21l-1.2-2.8L14 17l2.8-1.2zM9 11h6v2H9zm0 4h4v2H9z"/>
</svg>`
});

export class SidePanel extends ReactWidget {
  constructor(private readonly _context: IPanelContext) {
    super();
    const { store, trans } = _context;
    this.id = 'mcp-notebook-panel';
    this.addClass('jp-mcp-panel');
    this.title.icon = panelIcon;
    this.title.caption = trans.__('Tools of the notebook (MCP)');
    // The badge: how many questions wait for an answer.
    store.changed.connect(() => {
      const number = store.questions.length;
      this.title.className = number > 0 ? 'jp-mcp-asked' : '';
    });
  }

  /** Put the focus on its first button. */
  focus(): void {
    this.node.querySelector('button')?.focus();
  }

  protected render(): JSX.Element {
    return <Panel {...this._context} />;
  }
}

function Panel(context: IPanelContext): JSX.Element {
  const { store, trans } = context;
  useStore(store);
  const notebook = store.current;
  const spoken = store.questions.map(item => trans.__('May %1 run?', item.question.tool));
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
      <CallsSection {...props} />
      <EarlierCalls {...props} />
      <ClientsSection {...props} />
      <ConnectionSection {...props} />
    </>
  );
}
