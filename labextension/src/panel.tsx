/** The side panel as a widget, with its icon and its badge. */
import { LabIcon, ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { IPanelContext } from '../../panel/hooks';
import { Panel } from '../../panel/panel';

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
      const number = store.questions.length + store.proposals.length;
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
